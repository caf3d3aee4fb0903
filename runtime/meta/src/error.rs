//! The error that every layer above storage speaks: a reason, a message and details, as a `Status` carries them.
//!
//! It has no HTTP status code on purpose: only the `http` layer of the server knows the table from reason to code.

use crate::field::{FieldError, aggregate, echoed, go_quote};
use crate::gvk::{GroupKind, GroupResource};
use crate::types::{ListMeta, Status, StatusCause, StatusDetails};

/// Why a request failed, spelled as `Status.reason` spells it (`metav1.StatusReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatusReason {
    /// The object, or the resource, does not exist.
    NotFound,
    /// An object of that name exists already.
    AlreadyExists,
    /// The write was based on a state that is no longer the present one.
    Conflict,
    /// The object was decoded, but breaks a rule.
    Invalid,
    /// The request itself cannot be understood.
    BadRequest,
    /// Who is asking could not be established.
    Unauthorized,
    /// The caller, or an admission rule, does not allow it.
    Forbidden,
    /// The resource does not have that verb.
    MethodNotAllowed,
    /// No representation that the caller accepts.
    NotAcceptable,
    /// The body is in a format that is not understood.
    UnsupportedMediaType,
    /// The body is larger than the limit.
    RequestEntityTooLarge,
    /// The item is gone for good.
    Gone,
    /// The revision asked for is no longer kept.
    Expired,
    /// Try again later.
    TooManyRequests,
    /// The server is at fault.
    InternalError,
    /// The server could not finish in time, nothing was changed.
    ServerTimeout,
    /// The server cannot answer now.
    ServiceUnavailable,
    /// The request ran out of time; it may have had an effect.
    Timeout,
}

impl StatusReason {
    /// The spelling on the wire.
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

/// The most errors that one `Invalid` tells: a body full of mistakes must not make an answer many times its size.
pub const MAX_CAUSES: usize = 1_000;

/// The most bytes that the errors of one `Invalid` have together. The first error is always told.
const MAX_CAUSES_BYTES: usize = 256 * 1024;

/// A failed request, before it becomes a `Status` on the wire.
///
/// `reason` is absent for internal errors whose text is passed through (the wire then has code 500 and no reason).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// Why; absent means an internal error passed through as text.
    pub reason: Option<StatusReason>,
    /// What the caller reads.
    pub message: String,
    /// What the failure is about; `Some(default)` prints as `{}`, `None` is left out.
    pub details: Option<Box<StatusDetails>>,
    /// A continue token that goes into the Status' metadata (410 of a paged list).
    pub continue_token: Option<String>,
}

impl ApiError {
    /// An error with a reason and a message and no details.
    pub fn new(reason: StatusReason, message: impl Into<String>) -> Self {
        Self {
            reason: Some(reason),
            message: message.into(),
            details: None,
            continue_token: None,
        }
    }

    /// An internal error whose text is passed on as it is: code 500, no reason, no details.
    pub fn internal_text(message: impl Into<String>) -> Self {
        Self {
            reason: None,
            message: message.into(),
            details: None,
            continue_token: None,
        }
    }

    /// Puts details in.
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

    /// `flunders.wardle.example.com "a" not found`.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::about(
            StatusReason::NotFound,
            resource,
            name,
            format!("{resource} {} not found", go_quote(&echoed(name))),
        )
    }

    /// The path leads nowhere inside an installed group.
    pub fn no_such_resource() -> Self {
        Self::new(
            StatusReason::NotFound,
            "the server could not find the requested resource",
        )
        .with_details(StatusDetails::default())
    }

    /// `flunders.wardle.example.com "a" already exists`.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::about(
            StatusReason::AlreadyExists,
            resource,
            name,
            format!("{resource} {} already exists", go_quote(&echoed(name))),
        )
    }

    /// `Operation cannot be fulfilled on flunders.wardle.example.com "a": WHY`.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {resource} {}: {why}",
            go_quote(&echoed(name))
        );
        Self::about(StatusReason::Conflict, resource, name, message)
    }

    /// `flunders.wardle.example.com "a" is forbidden: WHY`; a name, or a resource, that is empty is left out.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = match (resource.resource.as_str(), name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{resource} is forbidden: {why}"),
            _ => format!("{resource} {} is forbidden: {why}", go_quote(&echoed(name))),
        };
        Self::about(StatusReason::Forbidden, resource, name, message)
    }

    /// The request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusReason::BadRequest, message)
    }

    /// `Request entity too large: limit is 3145728`: a body, or what would become of it, has more bytes than that.
    pub fn too_large(limit: usize) -> Self {
        Self::new(
            StatusReason::RequestEntityTooLarge,
            format!("Request entity too large: limit is {limit}"),
        )
    }

    /// `Internal error occurred: WHY`, with the text as a cause. A text that is the message of such an error gives that
    /// error again: the words come once.
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

    /// `get is not supported on resources of kind "flunders.wardle.example.com"`: the kind lacks the verb.
    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Self {
        let message = format!(
            "{action} is not supported on resources of kind {}",
            go_quote(&resource.to_string())
        );
        Self::about(StatusReason::MethodNotAllowed, resource, "", message)
    }

    /// `Kind.group "name" is invalid: ERRORS`, one cause per error, as the API conventions print it:
    /// one error bare, several in brackets, identical texts once in the message but kept in the causes. Errors behind
    /// the first [`MAX_CAUSES`], or behind 256 KiB of them, are left out.
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
            causes: errors.iter().map(FieldError::cause).collect(),
            ..StatusDetails::default()
        })
    }
}

impl Status {
    /// The failure that the error describes. The code is left to the `http` layer, which alone knows the codes.
    pub fn failure(error: &ApiError) -> Self {
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

impl FieldError {
    /// The error as the cause of a Status.
    pub fn cause(&self) -> StatusCause {
        StatusCause {
            reason: self.kind.as_str().to_owned(),
            message: self.body.clone(),
            field: self.path.to_string(),
        }
    }
}

/// How many of these errors are told.
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
