//! The error of the registry and the API: a reason, a message and details, as in a `Status`.
//!
//! It has no HTTP status code: only the `http` layer of the server maps reasons to codes.

pub use crate::field::MAX_CAUSES;
use crate::field::{FieldError, aggregate, echoed, go_quote};
use crate::gvk::{GroupKind, GroupResource};
use crate::types::{ListMeta, Status, StatusCause, StatusDetails};

/// The reason of a failed request (`metav1.StatusReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatusReason {
    /// The object, or the resource, does not exist.
    NotFound,
    /// An object with this name exists already.
    AlreadyExists,
    /// The write was based on an older state of the object.
    Conflict,
    /// The object could be decoded, but is not valid.
    Invalid,
    /// The request is malformed.
    BadRequest,
    /// The user could not be authenticated.
    Unauthorized,
    /// The user, or an admission plugin, does not allow it.
    Forbidden,
    /// The resource does not support the verb.
    MethodNotAllowed,
    /// The response is available in no format that the client accepts.
    NotAcceptable,
    /// The format of the body is not supported.
    UnsupportedMediaType,
    /// The body is larger than the limit.
    RequestEntityTooLarge,
    /// The item existed once, and will not exist again.
    Gone,
    /// The requested revision is compacted.
    Expired,
    /// The server is overloaded; the client should retry later.
    TooManyRequests,
    /// An error of the server.
    InternalError,
    /// The server could not complete the request in time; nothing was changed.
    ServerTimeout,
    /// The server cannot process requests at present.
    ServiceUnavailable,
    /// The request timed out; it may have had an effect.
    Timeout,
}

impl StatusReason {
    /// The spelling of `Status.reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Invalid => "Invalid",
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::Gone => "Gone",
            Self::Expired => "Expired",
            Self::TooManyRequests => "TooManyRequests",
            Self::InternalError => "InternalError",
            Self::ServerTimeout => "ServerTimeout",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Timeout => "Timeout",
        }
    }
}

/// Maximum size of all causes of an `Invalid` error, in bytes. The first cause is always included.
const MAX_CAUSES_BYTES: usize = 256 * 1024;

/// Error of a request, which becomes a `Status` on the wire.
///
/// Without a `reason` it is an internal error with its original text (code 500 and no reason on the wire).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The reason; `None` for an internal error with its original text.
    pub reason: Option<StatusReason>,
    /// The message for the client.
    pub message: String,
    /// The object that the error is about; `Some(default)` is written as `{}`, `None` is omitted.
    pub details: Option<Box<StatusDetails>>,
    /// A continue token for the Status' metadata (410 of a paged list).
    pub continue_token: Option<String>,
    /// The answer of another program, such as a webhook, which is passed on with its code and its reason; `None` for an error of this
    /// server.
    pub foreign: Option<Box<Status>>,
}

impl ApiError {
    /// An error with a reason and a message, without details.
    pub fn new(reason: StatusReason, message: impl Into<String>) -> Self {
        Self {
            reason: Some(reason),
            message: message.into(),
            details: None,
            continue_token: None,
            foreign: None,
        }
    }

    /// An internal error with its original text: code 500, no reason, no details.
    pub fn internal_text(message: impl Into<String>) -> Self {
        Self {
            reason: None,
            message: message.into(),
            details: None,
            continue_token: None,
            foreign: None,
        }
    }

    /// The error that another program answers: its code, reason, message and details. A code below 400 is 400.
    pub fn of_status(mut status: Status) -> Self {
        status.code = Some(status.code.unwrap_or_default().max(400));
        if status.status.is_empty() || status.status == "Success" {
            status.status = "Failure".to_owned();
        }
        Self {
            reason: None,
            message: status.message.clone(),
            details: status.details.clone().map(Box::new),
            continue_token: None,
            foreign: Some(Box::new(status)),
        }
    }

    /// Sets the details.
    #[must_use]
    pub fn with_details(mut self, details: StatusDetails) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    fn about(reason: StatusReason, resource: &GroupResource, name: &str, message: String) -> Self {
        Self::new(reason, message).with_details(StatusDetails {
            name: echoed(name).into_owned(),
            group: echoed(&resource.group).into_owned(),
            kind: echoed(&resource.resource).into_owned(),
            ..StatusDetails::default()
        })
    }

    /// NotFound: `flunders.wardle.example.com "a" not found`.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::about(
            StatusReason::NotFound,
            resource,
            name,
            format!("{resource} {} not found", go_quote(&echoed(name))),
        )
    }

    /// NotFound for an unknown path in an existing group.
    pub fn no_such_resource() -> Self {
        Self::new(
            StatusReason::NotFound,
            "the server could not find the requested resource",
        )
        .with_details(StatusDetails::default())
    }

    /// AlreadyExists: `flunders.wardle.example.com "a" already exists`.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::about(
            StatusReason::AlreadyExists,
            resource,
            name,
            format!("{resource} {} already exists", go_quote(&echoed(name))),
        )
    }

    /// Conflict: `Operation cannot be fulfilled on flunders.wardle.example.com "a": WHY`.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {resource} {}: {why}",
            go_quote(&echoed(name))
        );
        Self::about(StatusReason::Conflict, resource, name, message)
    }

    /// Forbidden: `flunders.wardle.example.com "a" is forbidden: WHY`; an empty name or resource is omitted.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = match (resource.resource.as_str(), name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{resource} is forbidden: {why}"),
            _ => format!("{resource} {} is forbidden: {why}", go_quote(&echoed(name))),
        };
        Self::about(StatusReason::Forbidden, resource, name, message)
    }

    /// BadRequest with this message.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusReason::BadRequest, message)
    }

    /// RequestEntityTooLarge, for a body, or a document made from it, with more bytes than the limit: `Request entity
    /// too large: limit is 3145728`.
    pub fn too_large(limit: usize) -> Self {
        Self::new(
            StatusReason::RequestEntityTooLarge,
            format!("Request entity too large: limit is {limit}"),
        )
    }

    /// InternalError: `Internal error occurred: WHY`, with the text as a cause. A text that begins with these words
    /// already is not prefixed again.
    pub fn internal(why: impl Into<String>) -> Self {
        const WORDS: &str = "Internal error occurred: ";
        let why = why.into();
        let why = why.strip_prefix(WORDS).unwrap_or(&why).to_owned();
        Self::new(StatusReason::InternalError, format!("{WORDS}{why}")).with_details(
            StatusDetails {
                causes: vec![StatusCause {
                    message: why,
                    ..StatusCause::default()
                }],
                ..StatusDetails::default()
            },
        )
    }

    /// MethodNotAllowed for a verb that the kind does not support: `get is not supported on resources of kind
    /// "flunders.wardle.example.com"`.
    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Self {
        let message = format!(
            "{action} is not supported on resources of kind {}",
            go_quote(&resource.to_string())
        );
        Self::about(StatusReason::MethodNotAllowed, resource, "", message)
    }

    /// Invalid: `Kind.group "name" is invalid: ERRORS`, with one cause per error, in the format of the API
    /// conventions: a single error plain, several in brackets, equal texts once in the message but all in the causes.
    /// Errors beyond [`MAX_CAUSES`], or beyond 256 KiB, are omitted.
    pub fn invalid(kind: &GroupKind, name: &str, errors: &[FieldError]) -> Self {
        let errors = &errors[..told(errors)];
        let aggregate = aggregate(errors);
        Self::new(
            StatusReason::Invalid,
            format!("{kind} {} is invalid: {aggregate}", go_quote(&echoed(name))),
        )
        .with_details(StatusDetails {
            name: echoed(name).into_owned(),
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            causes: errors.iter().map(Into::into).collect(),
            ..StatusDetails::default()
        })
    }
}

impl Status {
    /// The failure for an error. The code is set by the `http` layer, which maps reasons to codes.
    pub fn failure(error: &ApiError) -> Self {
        if let Some(foreign) = &error.foreign {
            return Self::clone(foreign);
        }
        Self {
            metadata: ListMeta {
                continue_token: error.continue_token.clone(),
                ..ListMeta::default()
            },
            message: error.message.clone(),
            reason: error
                .reason
                .map(|reason| reason.as_str().to_owned())
                .unwrap_or_default(),
            details: error.details.as_deref().cloned(),
            ..Self::new("Failure")
        }
    }
}

impl From<&FieldError> for StatusCause {
    /// The error as a cause of a Status.
    fn from(error: &FieldError) -> Self {
        Self {
            reason: error.kind.as_str().to_owned(),
            message: error.body.clone(),
            field: error.path.to_string(),
        }
    }
}

/// Number of errors that become causes.
fn told(errors: &[FieldError]) -> usize {
    let mut bytes = 0;
    let fit = errors.iter().take(MAX_CAUSES).take_while(|error| {
        bytes += error.path.as_str().len() + error.body.len();
        bytes <= MAX_CAUSES_BYTES
    });
    fit.count().max(1).min(errors.len())
}

#[cfg(test)]
mod tests;
