//! The conditions under which an object is written: its uid, and its resourceVersion.

use apiloom_meta::{ApiError, FieldError, FieldPath, GroupKind, Object};
use apiloom_storage::Revision;

use super::request::WriteRequest;
use crate::error;
use crate::objects::versioned_resource::VersionedResource;
use crate::options::Preconditions;

/// Conflict if a body has another uid than the present object.
pub(crate) fn check_uid(
    resource: &VersionedResource,
    request: WriteRequest<'_>,
    uid: &str,
    present: &str,
) -> Result<(), ApiError> {
    if uid.is_empty() || uid == present {
        return Ok(());
    }
    let key = resource.kind.keys.key(request.namespace, request.name)?;
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {uid}, UID in object meta: {present}"
    );
    let resource = resource.group_resource();
    Err(ApiError::conflict(resource, request.name, &why))
}

/// Conflict if the new object has another resourceVersion than the present one. It may be absent if the kind allows
/// unconditional updates.
pub(crate) fn check_version(
    resource: &VersionedResource,
    request: WriteRequest<'_>,
    new: &Object,
    present: Revision,
) -> Result<(), ApiError> {
    let given = error::parse_version(new.resource_version()).map_err(ApiError::internal_text)?;
    if given == present.0 {
        return Ok(());
    }
    refuse_version(resource, request, given != 0)
}

/// As [`check_version`], for objects of code, whose resourceVersions are any text.
pub(crate) fn check_version_of_code(
    resource: &VersionedResource,
    request: WriteRequest<'_>,
    new: &Object,
    present: &Object,
) -> Result<(), ApiError> {
    let given = new.resource_version();
    if given == present.resource_version() {
        return Ok(());
    }
    refuse_version(resource, request, !matches!(given, "" | "0"))
}

/// Refuses another resourceVersion than the present one, or a missing one if the kind does not allow that.
fn refuse_version(
    resource: &VersionedResource,
    request: WriteRequest<'_>,
    is_given: bool,
) -> Result<(), ApiError> {
    if is_given {
        return Err(modified(resource, request.name));
    }
    if resource.def().unconditional_update {
        return Ok(());
    }
    let path = FieldPath::new("metadata").child("resourceVersion");
    let error = FieldError::invalid(&path, 0, "must be specified for an update");
    // kube-apiserver has the resource in place of the kind in this error.
    let resource = resource.group_resource();
    let kind = GroupKind::new(&resource.group, &resource.resource);
    Err(ApiError::invalid(&kind, request.name, &[error]))
}

/// Checks the preconditions of a request for a subresource with a handler.
///
/// # Errors
/// Conflict, with the texts of an update.
pub(crate) fn check_present(
    resource: &VersionedResource,
    request: WriteRequest<'_>,
    preconditions: &Preconditions,
    present: &Object,
) -> Result<(), ApiError> {
    let uid = preconditions.uid.as_deref().unwrap_or_default();
    let request = WriteRequest {
        name: present.name(),
        ..request
    };
    check_uid(resource, request, uid, present.uid())?;
    match &preconditions.resource_version {
        Some(version) if version != present.resource_version() => {
            Err(modified(resource, present.name()))
        }
        Some(_) | None => Ok(()),
    }
}

fn modified(resource: &VersionedResource, name: &str) -> ApiError {
    ApiError::conflict(resource.group_resource(), name, error::MODIFIED)
}
