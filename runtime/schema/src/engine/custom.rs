//! Schemas of custom resources, made at run time from the `openAPIV3Schema` of a CustomResourceDefinition.
//!
//! They use the tree of all schemas, with dialects of their own. Decoding, pruning and defaults follow
//! `k8s.io/apiextensions-apiserver`, validation follows `k8s.io/kube-openapi`, with its texts.

mod build;
mod defaults;
mod digest;
mod dropped;
mod enums;
mod formats;
mod lists;
mod metadata;
mod parts;
mod publish;
mod stored;
mod validate;

use bytes::Bytes;
use serde_json::{Map, Value};

pub(super) use self::defaults::{default_errors, has_unknown_fields, metadata_errors};
pub use self::digest::Digests;
pub use self::formats::is_valid as has_format;
pub(super) use self::publish::{v2, v3};
pub use self::stored::StoredSchema;

use super::constructors::{has_embedded, has_singles};
use super::{Schema, SchemaErrors};

impl Schema {
    /// Whether decoding the fields of a custom resource may drop anything that [`Schema::put_back_dropped`] puts back.
    pub fn may_drop(&self, document: &Map<String, Value>) -> bool {
        dropped::may_drop(self.root(), document)
    }

    /// Puts what the decoder dropped from the fields of a custom resource, but from its metadata, back into them, so that
    /// validation sees it. Returns whether there was anything.
    pub fn put_back_dropped(
        &self,
        document: &Map<String, Value>,
        decoded: &mut Map<String, Value>,
    ) -> bool {
        dropped::put_back(self.root(), document, decoded)
    }

    /// The schema of a custom resource, from the `openAPIV3Schema` of a version of a CustomResourceDefinition.
    ///
    /// [`structural::refusals`](super::structural::refusals) reports what kube-apiserver refuses in a definition; this
    /// function makes a schema of every document that it accepts.
    ///
    /// - The decoder of `apiloom-meta` keeps values of wrong types, which validation reports; it prunes unknown
    ///   fields, and drops nulls of fields that are not nullable and have no default.
    /// - [`Schema::validate`] and [`Schema::validate_update`] have the texts of kube-apiserver for custom resources. An
    ///   update tolerates errors of values that it does not change.
    /// - The encoder sorts all fields.
    /// - Rules of `x-kubernetes-validations` are kept, but not evaluated.
    ///
    /// The JSON of the document is kept for [`Schema::to_openapi`].
    ///
    /// # Errors
    /// If a keyword has a value of the wrong type, or a pattern is not a regular expression; each line names the field.
    pub fn of_custom_resource(document: &Value) -> Result<Self, SchemaErrors> {
        let json = serde_json::to_vec(document).unwrap_or_default();
        Self::of_custom_document(document, json.into())
    }

    /// As [`Schema::of_custom_resource`], of the JSON of a document. The bytes are kept as they are, so that a part of a
    /// stored definition needs no memory of its own.
    ///
    /// # Errors
    /// As [`Schema::of_custom_resource`], and if the bytes are not JSON.
    pub fn of_custom_resource_json(json: Bytes) -> Result<Self, SchemaErrors> {
        let document = serde_json::from_slice(&json)
            .map_err(|error| SchemaErrors(vec![format!("the schema is not JSON: {error}")]))?;
        Self::of_custom_document(&document, json)
    }

    fn of_custom_document(document: &Value, json: Bytes) -> Result<Self, SchemaErrors> {
        let root = build::root(document).map_err(SchemaErrors)?;
        Ok(Self {
            has_singles: has_singles(&root),
            has_update_rules: false,
            has_sensitive: false,
            has_embedded: has_embedded(&root),
            root,
            validation: &validate::CUSTOM,
            document: Some(json),
        })
    }
}

#[cfg(test)]
mod tests;
