//! Converts errors of the storage, of bodies and of patches to errors of the API.

use std::time::Duration;

use apiloom_meta::field::{echoed, go_quote};
use apiloom_meta::go_value::mistyped;
use apiloom_meta::patch::PatchError;
use apiloom_meta::{ApiError, FieldPath, GroupResource, StatusCause, StatusDetails, StatusReason};
use apiloom_storage::{Revision, StorageError};
use serde_json::Value;

/// How many bytes of an unrecognized body its error shows, as in kube-apiserver.
const SUMMARY_BYTES: usize = 30;

/// Conflict message for an update that was based on an older state of the object.
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

/// The error after the timeout of a request's work. The request may have had an effect.
pub fn handler_timeout() -> ApiError {
    let message =
        "Timeout: request did not complete within requested timeout - context deadline exceeded";
    ApiError::new(StatusReason::Timeout, message).with_details(StatusDetails::default())
}

/// TooManyRequests while the watch cache is being filled; `since` is for how long it has been. The retry delay grows
/// with it.
pub(super) fn initializing(since: Duration) -> ApiError {
    let seconds = (since.as_secs_f64() * 0.06).exp().clamp(1.0, 30.0);
    ApiError::new(StatusReason::TooManyRequests, "storage is (re)initializing").with_details(
        StatusDetails {
            retry_after_seconds: seconds as u32,
            ..StatusDetails::default()
        },
    )
}

/// Expired: the exact state that a list requested is no longer kept.
pub(super) fn expired_list() -> ApiError {
    ApiError::new(
        StatusReason::Expired,
        "The resourceVersion for the provided list is too old.",
    )
}

/// Expired: the state from which a watch should resume is no longer kept.
pub(super) fn expired_watch(requested: Revision, compacted: Revision) -> ApiError {
    ApiError::new(
        StatusReason::Expired,
        format!("too old resource version: {requested} ({compacted})"),
    )
}

/// Timeout: the requested resourceVersion is newer than the current state.
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

/// Why a document that is not a JSON object cannot be decoded. The text is that of Go, which decodes apiVersion and kind
/// into a struct first.
pub fn no_type(document: &Value) -> String {
    let why = mistyped(
        document,
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#,
    );
    format!("couldn't get version/kind; json parse error: {why}")
}

/// What Go says of a document without a kind, which it shows.
pub(crate) fn no_kind(document: &[u8]) -> String {
    let text = String::from_utf8_lossy(document);
    format!("Object 'Kind' is missing in '{}'", echoed(&text))
}

/// BadRequest for a body that cannot be decoded as an object of a kind.
pub(crate) fn unrecognized(kind: &str, why: &str, body: &[u8]) -> ApiError {
    let summary = summary(body);
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({summary})"
    ))
}

/// The beginning of a body for an error text: as text if it looks like JSON, else in hexadecimal.
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

/// The error of the API for a patch that is malformed or cannot be applied.
pub fn refused_patch(error: &PatchError) -> ApiError {
    match error {
        PatchError::Malformed(_) | PatchError::BadFormat(_) => {
            ApiError::bad_request(error.to_string())
        }
        // kube-apiserver has no table entry for it, so it is an error of the server there.
        PatchError::UnknownDirective(_) => ApiError::internal_text(error.to_string()),
        PatchError::TooManyOperations(_) => ApiError::new(
            StatusReason::RequestEntityTooLarge,
            format!("Request entity too large: {error}"),
        ),
        // The reason of a failure is not in the message: kube-apiserver's is as general.
        PatchError::NotApplicable(_) | PatchError::Unmergeable(_) => ApiError::new(
            StatusReason::Invalid,
            "the server rejected our request due to an error in our request",
        )
        .with_details(StatusDetails::default()),
    }
}

/// Parses a resourceVersion; empty means unset and gives 0. The error has the text of Go's `strconv.ParseUint`.
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

/// Parses the resourceVersion of a get or a watch. The error has no reason (it is a 500), as in kube-apiserver.
pub(super) fn version_option(text: &str) -> Result<u64, ApiError> {
    parse_version(text).map_err(|why| {
        let quoted = go_quote(&echoed(text));
        ApiError::internal_text(format!(
            "{}: Invalid value: {quoted}: {why}",
            FieldPath::new("resourceVersion")
        ))
    })
}
