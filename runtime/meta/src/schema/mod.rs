//! The structural schema and the one engine that walks a document against it.
//!
//! One schema per kind is the source of truth: unknown and duplicate fields, pruning, nulls, defaults, validation and
//! list topology all read the same tree, for compiled kinds and, later, for run-time CRDs.

use serde_json::Value;

use crate::field::{FieldError, FieldPath};
use crate::kind::{ApiType, Hooks};

/// A structural schema: what a document of a kind may hold.
#[derive(Clone, Debug)]
pub struct Schema {}

/// Why a type has no structural schema: one line per offending field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct SchemaErrors(pub Vec<String>);

impl Schema {
    /// The structural schema of a root type (a `Resource`): `metadata` is replaced by the schema of `ObjectMeta`,
    /// `apiVersion` and `kind` are added.
    ///
    /// # Errors
    /// When schemars gives something that no structural schema can say; each line names the field.
    pub fn for_resource<T: schemars::JsonSchema + ApiType>() -> Result<Self, SchemaErrors> {
        todo!()
    }
    /// The structural schema of any type.
    ///
    /// # Errors
    /// As [`Schema::for_resource`].
    pub fn for_type<T: schemars::JsonSchema + ApiType>() -> Result<Self, SchemaErrors> {
        todo!()
    }
    /// The schema of a JSON document in the spelling of a CRD's `openAPIV3Schema`.
    ///
    /// # Errors
    /// As [`Schema::for_resource`].
    pub fn from_json(_schema: &Value, _hooks: Hooks) -> Result<Self, SchemaErrors> {
        todo!()
    }
    /// The schema as OpenAPI v3 / `openAPIV3Schema` JSON, defaults and `x-kubernetes-*` included, our private
    /// `x-apiloom-*` keywords left out.
    pub fn to_openapi(&self) -> Value {
        todo!()
    }
    /// Puts in the defaults of absent fields, recursively; absent parents are not made unless they have a default.
    pub fn default(&self, _document: &mut Value) {
        todo!()
    }
    /// Drops what the schema does not know and nulls that it does not allow.
    pub fn prune(&self, _document: &mut Value) {
        todo!()
    }
    /// Checks a well-typed document: presence, bounds, formats, patterns, enums, list and map topology, unions, checks.
    pub fn validate(&self, _document: &Value) -> Vec<FieldError> {
        todo!()
    }
    /// Checks the transition from `old` to `new`: immutable fields and the other update rules.
    pub fn validate_update(&self, _new: &Value, _old: &Value) -> Vec<FieldError> {
        todo!()
    }
    /// The field at a path of JSON names, if the schema knows it (columns and selectable fields are checked so).
    pub fn has_path(&self, _path: &crate::path::JsonPath) -> bool {
        todo!()
    }
    /// The names of an object's fields at the root in declared order, for encoding.
    pub fn path_of_root(&self) -> FieldPath {
        FieldPath::root()
    }
}
