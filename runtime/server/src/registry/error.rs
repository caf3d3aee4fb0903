//! From what the store says to what the API says.

use std::time::Duration;

use apiloom_meta::field::{echoed, go_quote};
use apiloom_meta::patch::PatchError;
use apiloom_meta::{ApiError, FieldPath, GroupResource, StatusCause, StatusDetails, StatusReason};
use apiloom_storage::{Revision, StorageError};

/// How much of an unrecognized body its error shows, as kube-apiserver has it.
const SUMMARY_BYTES: usize = 30;

/// What clients read when their update was based on an old state.
pub(super) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// The API's error for a failed operation of the store.
pub(super) fn from_storage(
    error: StorageError,
    resource: &GroupResource,
    operation: &str,
) -> ApiError {
    match error {
        StorageError::Unavailable(_) => unavailable(resource, operation),
        StorageError::Refused(text) => ApiError::internal_text(text),
        StorageError::Compacted { .. } | StorageError::Restored { .. } => expired_list(),
        StorageError::Future { requested, current } => too_large(requested.0, current),
        StorageError::Corrupt(text) => ApiError::internal(format!("corrupt store: {text}")),
        other => ApiError::internal(other.to_string()),
    }
}

fn unavailable(resource: &GroupResource, operation: &str) -> ApiError {
    let message = format!(
        "The {operation} operation against {resource} could not be completed at this time, please try again."
    );
    ApiError::new(StatusReason::ServerTimeout, message).with_details(StatusDetails {
        name: operation.to_owned(),
        group: resource.group.clone(),
        kind: resource.resource.clone(),
        retry_after_seconds: 2,
        ..StatusDetails::default()
    })
}

/// The watch cache is being filled, for so long already; clients return the later the longer it takes.
pub(super) fn initializing(since: Duration) -> ApiError {
    let seconds = (since.as_secs_f64() * 0.06).exp().clamp(1.0, 30.0);
    ApiError::new(StatusReason::TooManyRequests, "storage is (re)initializing").with_details(
        StatusDetails {
            retry_after_seconds: seconds as u32,
            ..StatusDetails::default()
        },
    )
}

/// The exact state that a list asked for is no longer kept.
pub(super) fn expired_list() -> ApiError {
    ApiError::new(
        StatusReason::Expired,
        "The resourceVersion for the provided list is too old.",
    )
}

/// The state that a watch wants to resume from is no longer kept.
pub(super) fn expired_watch(requested: Revision, compacted: Revision) -> ApiError {
    ApiError::new(
        StatusReason::Expired,
        format!("too old resource version: {requested} ({compacted})"),
    )
}

/// The state asked for does not exist yet.
pub(super) fn too_large(requested: u64, current: Revision) -> ApiError {
    let message = format!("Timeout: Too large resource version: {requested}, current: {current}");
    ApiError::new(StatusReason::Timeout, message).with_details(StatusDetails {
        causes: vec![StatusCause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            ..StatusCause::default()
        }],
        retry_after_seconds: 1,
        ..StatusDetails::default()
    })
}

/// The API's error for a body that is no document of any kind.
pub(crate) fn unrecognized(kind: &str, why: &str, body: &[u8]) -> ApiError {
    let summary = summary(body);
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({summary})"
    ))
}

/// The beginning of a body, as text when it looks like JSON, else in hexadecimal.
fn summary(body: &[u8]) -> String {
    let shown = &body[..body.len().min(SUMMARY_BYTES)];
    let text = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SUMMARY_BYTES {
        format!("{text} ...")
    } else {
        text
    }
}

/// The API's error for a patch that cannot be read or applied.
pub(crate) fn refused_patch(error: &PatchError) -> ApiError {
    match error {
        PatchError::Malformed(_) => ApiError::bad_request(error.to_string()),
        PatchError::TooManyOperations(_) => ApiError::new(
            StatusReason::RequestEntityTooLarge,
            format!("Request entity too large: {error}"),
        ),
        // Why an operation failed is not told: upstream's answer is as generic.
        PatchError::NotApplicable(_) => ApiError::new(
            StatusReason::Invalid,
            "the server rejected our request due to an error in our request",
        )
        .with_details(StatusDetails::default()),
    }
}

/// Reads a resourceVersion; empty counts as 0, which means unset. The error is Go's text of `strconv.ParseUint`.
pub(super) fn parse_version(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let quoted = go_quote(&echoed(text));
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "strconv.ParseUint: parsing {quoted}: invalid syntax"
        ));
    }
    text.parse()
        .map_err(|_| format!("strconv.ParseUint: parsing {quoted}: value out of range"))
}

/// Reads the resourceVersion of a get or a watch; the error is passed through without a reason, as upstream does.
pub(super) fn version_option(text: &str) -> Result<u64, ApiError> {
    parse_version(text).map_err(|why| {
        let quoted = apiloom_meta::field::go_quote(text);
        ApiError::internal_text(format!(
            "{}: Invalid value: {quoted}: {why}",
            FieldPath::new("resourceVersion")
        ))
    })
}
