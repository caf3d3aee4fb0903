//! What a request can fail with.

use std::fmt;
use std::time::Duration;

use apiloom_meta::{Status, StatusCause};

use crate::transport::{HttpTransportError, TransportError};

/// The error of a request, or of a stream.
///
/// ```
/// # use apiloom_client::Error;
/// # fn example(result: Result<(), Error>) -> Result<(), Error> {
/// match result {
///     Err(error) if error.is_not_found() => Ok(()),
///     other => other,
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused, or failed. The code of HTTP is in the Status.
    #[error("{}", status_text(.0))]
    Api(Box<Status>),
    /// The server's answer is not what was asked for.
    #[error("{0}")]
    Decode(Box<DecodeError>),
    /// There is no answer, or it broke off.
    #[error("no answer from the server: {0}")]
    Transport(#[source] TransportError),
    /// There was no complete answer within this time. The request may have had an effect.
    #[error("no answer from the server within {0:?}")]
    Timeout(Duration),
    /// The client was shut down, or what it needs.
    #[error("the client is closed: {0}")]
    Closed(String),
    /// The request cannot be made of these values: nothing was sent.
    #[error("{0}")]
    Request(String),
}

/// A response, or a part of it, that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Path and query of the request.
    pub path: String,
    /// The kind that was expected.
    pub kind: String,
    /// Namespace and name of the object, as far as they could be read: `default/a`. Else empty.
    pub name: String,
    /// The problem, without the values that are wrong.
    pub reason: String,
    /// The beginning of the text, or its part around the problem. Of JSON without the texts of values, which may be secret.
    pub excerpt: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot decode a {}", self.kind)?;
        if !self.name.is_empty() {
            write!(f, " ({})", self.name)?;
        }
        write!(f, " from {}: {}", self.path, self.reason)?;
        if self.excerpt.is_empty() {
            return Ok(());
        }
        write!(f, ": {:?}", self.excerpt)
    }
}

impl std::error::Error for DecodeError {}

fn status_text(status: &Status) -> String {
    let code = status.code.unwrap_or_default();
    match (status.message.as_str(), status.reason.as_str()) {
        ("", "") => format!("the server answered with code {code}"),
        ("", reason) => format!("the server answered {reason} (code {code})"),
        (message, "") => message.to_owned(),
        (message, reason) => format!("{message} ({reason})"),
    }
}

impl From<TransportError> for Error {
    fn from(error: TransportError) -> Self {
        if error.is_closed() {
            Self::Closed(error.to_string())
        } else {
            Self::Transport(error)
        }
    }
}

impl From<HttpTransportError> for Error {
    fn from(error: HttpTransportError) -> Self {
        Self::Request(error.to_string())
    }
}

impl Error {
    /// The Status of the server's answer; `None` if there is none.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api(status) => Some(status),
            _ => None,
        }
    }

    /// The HTTP code of the server's answer; `None` if there is none.
    pub fn code(&self) -> Option<u16> {
        self.status()?.code
    }

    /// Whether the answer has this reason or, without a reason, this code. As client-go's `reasonAndCodeForError`, a known
    /// reason wins over the code.
    fn is(&self, reason: &str, code: u16) -> bool {
        self.status().is_some_and(|status| {
            if is_known(&status.reason) {
                status.reason == reason
            } else {
                status.code == Some(code)
            }
        })
    }

    /// The object, or the resource, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is("NotFound", 404)
    }

    /// An object with this name exists already. A code without this reason is none: 409 mostly means a conflict.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(|s| s.reason == "AlreadyExists")
    }

    /// The object was changed since it was read, or an apply has conflicts ([`Error::conflicts`]).
    pub fn is_conflict(&self) -> bool {
        self.is("Conflict", 409)
    }

    /// The resourceVersion or the continue token is too old: list again.
    pub fn is_expired(&self) -> bool {
        self.is("Expired", 410) || self.is("Gone", 410)
    }

    /// The object is not valid; see [`Error::causes`].
    pub fn is_invalid(&self) -> bool {
        self.is("Invalid", 422)
    }

    /// The user may not do this.
    pub fn is_forbidden(&self) -> bool {
        self.is("Forbidden", 403)
    }

    /// The server does not know who sends the request.
    pub fn is_unauthorized(&self) -> bool {
        self.is("Unauthorized", 401)
    }

    /// The server is overloaded; see [`Error::retry_after`].
    pub fn is_too_many_requests(&self) -> bool {
        self.is("TooManyRequests", 429)
    }

    /// The server has not seen the resourceVersion yet, which another replica may have: ask again without one.
    pub fn is_too_large_resource_version(&self) -> bool {
        let Some(status) = self.status() else {
            return false;
        };
        let is_timeout = self.is("Timeout", 504);
        let mut causes = self.causes().iter();
        // Servers before Kubernetes 1.17 have only the message.
        is_timeout
            && (causes.any(|cause| cause.reason == "ResourceVersionTooLarge")
                || status.message.contains("Too large resource version"))
    }

    /// How long the server asks to wait before the request is sent again.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    /// The causes of the failure, such as the fields that are not valid.
    pub fn causes(&self) -> &[StatusCause] {
        let details = self.status().and_then(|status| status.details.as_ref());
        details.map_or(&[], |details| &details.causes)
    }

    /// The conflicts of an apply: each field that another manager has, and that manager.
    pub fn conflicts(&self) -> impl Iterator<Item = ApplyConflict<'_>> {
        let causes = self.causes().iter();
        let causes = causes.filter(|cause| cause.reason == "FieldManagerConflict");
        causes.map(|cause| ApplyConflict {
            field: &cause.field,
            manager: manager_of(&cause.message),
        })
    }

    /// Whether the request may succeed later without a change: there was no answer, or the server says so.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Transport(_) | Self::Timeout(_) => true,
            Self::Api(status) => {
                self.retry_after().is_some() || matches!(status.code, Some(429 | 500..=599))
            }
            Self::Decode(_) | Self::Closed(_) | Self::Request(_) => false,
        }
    }
}

/// A field that an apply would take from another manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplyConflict<'a> {
    /// Path of the field: `.spec.replicas`.
    pub field: &'a str,
    /// The other manager.
    pub manager: &'a str,
}

/// The manager in `conflict with "NAME" with subresource "S" using v1 at TIME`; the whole text if it is not so.
fn manager_of(message: &str) -> &str {
    let quoted = message.strip_prefix("conflict with \"");
    quoted
        .and_then(|rest| rest.split_once('"'))
        .map_or(message, |(manager, _)| manager)
}

/// The reasons that [`apiloom_meta::StatusReason`] has.
fn is_known(reason: &str) -> bool {
    const KNOWN: [&str; 18] = [
        "NotFound",
        "AlreadyExists",
        "Conflict",
        "Invalid",
        "BadRequest",
        "Unauthorized",
        "Forbidden",
        "MethodNotAllowed",
        "NotAcceptable",
        "UnsupportedMediaType",
        "RequestEntityTooLarge",
        "Gone",
        "Expired",
        "TooManyRequests",
        "InternalError",
        "ServerTimeout",
        "ServiceUnavailable",
        "Timeout",
    ];
    KNOWN.contains(&reason)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn api(code: u16, reason: &str, details: serde_json::Value) -> Error {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": reason,
            "details": details, "code": code,
        });
        Error::Api(Box::new(serde_json::from_value(status).unwrap()))
    }

    #[test]
    fn a_reason_wins_over_the_code() {
        assert!(api(404, "NotFound", json!({})).is_not_found());
        assert!(api(404, "", json!({})).is_not_found());
        assert!(api(409, "", json!({})).is_conflict());
        assert!(!api(409, "AlreadyExists", json!({})).is_conflict());
        assert!(api(409, "AlreadyExists", json!({})).is_already_exists());
        assert!(api(410, "Expired", json!({})).is_expired());
        assert!(api(410, "Gone", json!({})).is_expired());
        assert!(api(410, "SomethingNew", json!({})).is_expired());
        assert!(!Error::Timeout(Duration::ZERO).is_expired());
    }

    #[test]
    fn a_too_large_resource_version_is_told_from_other_timeouts() {
        let cause =
            json!({"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1});
        let error = api(504, "Timeout", cause);
        assert!(error.is_too_large_resource_version());
        assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
        assert!(!api(504, "Timeout", json!({})).is_too_large_resource_version());
    }

    #[test]
    fn conflicts_name_field_and_manager() {
        let error = api(
            409,
            "Conflict",
            json!({"causes": [
                {"reason": "FieldManagerConflict", "message": "conflict with \"kubectl\" using v1", "field": ".spec.a"},
                {"reason": "Other", "message": "x"},
            ]}),
        );
        let conflicts: Vec<_> = error.conflicts().collect();
        let expected = ApplyConflict {
            field: ".spec.a",
            manager: "kubectl",
        };
        assert_eq!(conflicts, [expected]);
    }
}
