//! What is checked of every object's metadata, whatever its kind (`ValidateObjectMeta`, `ValidateObjectMetaUpdate`).

use crate::field::FieldError;
use crate::kind::{NameFormat, Scope};
use crate::object::Object;

/// Checks the metadata of an object about to be created: name, namespace, labels, annotations, owners, finalizers.
pub fn validate_create(_object: &Object, _scope: Scope, _format: NameFormat) -> Vec<FieldError> {
    todo!()
}

/// Checks what an update did to the metadata: immutable fields, finalizers of an object being deleted.
pub fn validate_update(_new: &Object, _old: &Object, _scope: Scope) -> Vec<FieldError> {
    todo!()
}
