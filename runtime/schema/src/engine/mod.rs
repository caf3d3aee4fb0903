//! The structural schema, and the engine that walks a document against it.
//!
//! The schema of a kind is the only source for unknown and duplicate fields, pruning, nulls, defaults, validation and
//! list topology, for compiled kinds and for those from documents.
//!
//! # Invariants
//!
//! - One schema engine validates documents. No other code decides which values a field may have; serde has no defaults.
//! - Schemas of custom resources (`Schema::of_custom_resource`, `schema/engine/custom`) are trees of the same engine. Where they differ
//!   from compiled kinds is an answer of a dialect: of `DocumentDialect` for what reads and writes documents, of `ValidationDialect` for
//!   the one walk that validates (`validate.rs`), which has the texts and the order of kube-openapi for them. OpenAPI is published from
//!   the document, whose descriptions the tree does not have; equal parts of a schema are one tree (`custom/digest.rs`).
//! - kube-apiserver accepts every generated CRD: `schema/engine/structural.rs` checks each before it is written, by the same rules as
//!   definitions that are sent to a server (`refusals`). Rules without an
//!   OpenAPI keyword are CEL (`schema/engine/cel.rs`); rules that CEL cannot express are comments at the head of the file.
//!   Evaluated as in kube-apiserver, they give the same result as the server for random documents and changes
//!   (`tests/tests/crd_rules`).

#[cfg(feature = "build")]
mod attach;
#[cfg(feature = "build")]
mod build;
mod cel;
#[cfg(feature = "build")]
mod combine;
#[cfg(feature = "build")]
mod constructors;
#[cfg(feature = "build")]
mod custom;
mod default;
mod difference;
mod document_dialect;
mod embedded_type;
mod enum_index;
mod equality;
mod error_list;
#[cfg(feature = "build")]
mod fit;
pub mod format;
mod go_numbers;
#[cfg(feature = "build")]
mod keywords;
#[cfg(feature = "build")]
mod known_formats;
#[cfg(not(feature = "build"))]
mod no_pattern;
mod node;
mod numbers;
mod openapi;
mod own_rules;
#[cfg(feature = "build")]
mod plain_text;
#[cfg(feature = "build")]
mod problems;
#[cfg(feature = "build")]
mod recursion;
#[cfg(feature = "build")]
mod root;
mod sample;
mod sensitive;
mod strings;
#[cfg(feature = "build")]
pub mod structural;
mod texts;
mod transition;
mod twins;
mod union;
mod validate;
mod validation_dialect;
#[cfg(feature = "build")]
mod validations;
#[cfg(feature = "build")]
mod value_rules;
mod walk;
mod walk_path;

#[cfg(feature = "build")]
use bytes::Bytes;
use serde_json::Value;

use self::node::{Child, Node, Types};
use self::validation_dialect::ValidationDialect;
use crate::field::FieldError;
use crate::path::JsonPath;
use crate::query::{JsonQuery, Node as QueryNode};

#[cfg(feature = "build")]
pub use self::custom::{Digests, StoredSchema, has_format};
pub use self::default::DefaultsTooLarge;
pub use self::difference::merge_difference;
pub use self::openapi::Metadata;
#[cfg(feature = "build")]
pub use self::plain_text::plain_text;
pub use self::sensitive::{conceal, conceal_steps};

/// The tree of a schema and the steps of its walks, for the codecs, patches and managed fields of `apiloom-meta`. It changes with the
/// schemas: no other crate should use it.
#[doc(hidden)]
pub mod tree {
    #[cfg(feature = "build")]
    pub use super::build::OBJECT_META;
    pub use super::default::{default, drops_null};
    pub use super::document_dialect::DocumentDialect;
    pub use super::format;
    pub use super::node::{Child, ListType, Node, PatchStrategy, Property, QUANTITY, Types, child};
    #[cfg(feature = "build")]
    pub use super::structural::{drop_unknown, schema_node, type_error};
    pub use super::walk_path::Path;
}

/// A structural schema: the fields and values that a document of a kind may have. Only the feature `build` has its
/// constructors.
///
/// ```
/// use apiloom_schema::{Hooks, Schema};
/// use serde_json::json;
/// let schema = Schema::from_json(
///     &json!({"type": "object", "required": ["size"], "properties": {
///         "size": {"type": "integer", "maximum": 5},
///         "color": {"type": "string", "default": "red"}}}),
///     &Hooks::default(),
/// )?;
/// let mut document = json!({"size": 9, "bogus": 1});
/// schema.default(&mut document);
/// schema.prune(&mut document);
/// assert_eq!(document, json!({"size": 9, "color": "red"}));
/// let errors = schema.validate(&document);
/// assert_eq!(errors[0].to_string(), "size: Invalid value: 9: must be less than or equal to 5");
/// # Ok::<(), apiloom_schema::SchemaErrors>(())
/// ```
#[derive(Clone, Debug)]
pub struct Schema {
    root: Node,
    validation: &'static ValidationDialect,
    has_singles: bool,
    has_update_rules: bool,
    has_sensitive: bool,
    #[cfg(feature = "build")]
    has_embedded: bool,
    /// The JSON of the `openAPIV3Schema` of a custom resource.
    #[cfg(feature = "build")]
    document: Option<Bytes>,
}

/// A schema for a CustomResourceDefinition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrdSchema {
    /// The `openAPIV3Schema`.
    pub schema: Value,
    /// Checks of the server that the definition does not express, one line each.
    pub unsaid: Vec<String>,
}

/// Why a type has no structural schema: one line per field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct SchemaErrors(pub Vec<String>);

impl Schema {
    /// The node of the document.
    #[doc(hidden)]
    #[inline]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether documents may embed objects with metadata.
    #[cfg(feature = "build")]
    pub fn has_embedded(&self) -> bool {
        self.has_embedded
    }

    /// Whether it has a 32-bit float field. Documents have 64-bit floats; such a number, if it is parsed directly from
    /// text, may be rounded differently than by way of a document.
    pub fn has_singles(&self) -> bool {
        self.has_singles
    }

    /// Whether documents may have values that are secret.
    pub fn has_sensitive(&self) -> bool {
        self.has_sensitive
    }

    /// Whether it refuses some changes of values that are valid themselves.
    pub fn has_update_rules(&self) -> bool {
        self.has_update_rules
    }

    /// The schema as OpenAPI v3 / `openAPIV3Schema` JSON, with defaults and `x-kubernetes-*`, without the private
    /// `x-apiloom-*` keywords. `metadata` is the form of the object's metadata.
    pub fn to_openapi(&self, metadata: &Metadata<'_>) -> Value {
        #[cfg(feature = "build")]
        if let Some(document) = self.custom_document() {
            return custom::v3(document, metadata);
        }
        openapi::v3(&self.root, metadata)
    }

    /// The `openAPIV3Schema` of a custom resource, as it was written.
    #[cfg(feature = "build")]
    fn custom_document(&self) -> Option<Value> {
        // It was parsed before.
        serde_json::from_slice(self.document.as_ref()?).ok()
    }

    /// The schema as `openAPIV3Schema` of a CustomResourceDefinition: as [`Schema::to_openapi`], with CEL in
    /// `x-kubernetes-validations` for rules without OpenAPI keywords.
    pub fn to_crd(&self) -> CrdSchema {
        #[cfg(feature = "build")]
        if let Some(schema) = self.custom_document() {
            let unsaid = Vec::new();
            return CrdSchema { schema, unsaid };
        }
        let mut schema = openapi::v3(&self.root, &Metadata::Open);
        let unsaid = cel::write(&self.root, &mut schema);
        CrdSchema { schema, unsaid }
    }

    /// The schema as OpenAPI v2 (swagger) JSON. Schemas that v2 cannot express (nullable, oneOf, anyOf) lose their
    /// type, so that clients do not refuse values that the server accepts.
    pub fn to_openapi_v2(&self, metadata: &Metadata<'_>) -> Value {
        #[cfg(feature = "build")]
        if let Some(document) = self.custom_document() {
            return custom::v2(document, metadata);
        }
        openapi::v2(&self.root, metadata)
    }

    /// Applies the defaults of absent fields, recursively; absent parents are not added unless they have a default.
    /// Returns whether any were applied.
    pub fn default(&self, document: &mut Value) -> bool {
        default::default(&self.root, document)
    }

    /// As [`Schema::default`], with a limit.
    ///
    /// # Errors
    /// If the defaults have more than `max_bytes` bytes of JSON together; some of them may be applied then.
    pub fn default_within(
        &self,
        document: &mut Value,
        max_bytes: usize,
    ) -> Result<bool, DefaultsTooLarge> {
        default::default_within(&self.root, document, max_bytes)
    }

    /// Prunes unknown fields, and nulls that the schema does not allow.
    pub fn prune(&self, document: &mut Value) {
        default::prune(&self.root, document);
    }

    /// Validates a document on create: presence, types, bounds, formats, patterns, enums, list and map topology,
    /// unions, checks. The errors are in the order of the schema.
    pub fn validate(&self, document: &Value) -> Vec<FieldError> {
        (self.validation.validate)(&self.root, document, None)
    }

    /// Validates an update from `old` to `new`: all checks of [`Schema::validate`], and the update rules (immutable
    /// fields and others). Values equal to those in `old` are not validated again, so that an object that a newer
    /// schema would refuse can still be changed in other fields.
    pub fn validate_update(&self, new: &Value, old: &Value) -> Vec<FieldError> {
        (self.validation.validate)(&self.root, new, Some(old))
    }

    /// Validates an update that changes only one field of an object. Of a custom resource, only the value of this field has
    /// to fit its schema, as in kube-apiserver for the subresource `status`; the identity of list items is checked
    /// everywhere. For other schemas as [`Schema::validate_update`].
    pub fn validate_field_update(&self, field: &str, new: &Value, old: &Value) -> Vec<FieldError> {
        (self.validation.validate_field)(&self.root, field, new, old)
    }

    /// Whether the schema has a field at a path, as columns and selectable fields need it.
    pub fn has_path(&self, path: &JsonPath) -> bool {
        !matches!(self.at(path), Child::Unknown)
    }

    /// Whether the schema has values for a query, and the fields that its filters compare.
    pub fn has_query(&self, query: &JsonQuery) -> bool {
        let end = query
            .steps()
            .iter()
            .fold(self.at(query.start()), Child::step);
        !matches!(end, Child::Unknown)
    }

    /// Whether field selectors can compare the value at a path: a string, an integer or a boolean.
    pub fn is_comparable(&self, path: &JsonPath) -> bool {
        match self.at(path) {
            Child::Node(node) => {
                [Types::STRING, Types::INTEGER, Types::BOOLEAN].contains(&node.types)
            }
            Child::Free | Child::Unknown => false,
        }
    }

    /// Whether the value at a path is a list of strings.
    pub fn is_string_list(&self, path: &JsonPath) -> bool {
        let Child::Node(node) = self.at(path) else {
            return false;
        };
        let items = node.items.as_ref().map(|items| items.types);
        node.types == Types::ARRAY && items == Some(Types::STRING)
    }

    /// Whether the value at a path can be this text, according to its types and enum.
    pub fn takes_text(&self, path: &JsonPath, text: &str) -> bool {
        let Child::Node(node) = self.at(path) else {
            return false;
        };
        let values = &node.rules.values;
        node.types == Types::STRING && (values.is_empty() || values.iter().any(|one| one == text))
    }

    fn at(&self, path: &JsonPath) -> Child<'_> {
        Child::Node(&self.root).at(path)
    }
}

impl<'a> Child<'a> {
    /// The schema at a path below this one.
    fn at(self, path: &JsonPath) -> Child<'a> {
        let field = |at, name: &String| match at {
            Child::Node(node) => node.child(name),
            other => other,
        };
        path.names().iter().fold(self, field)
    }

    /// The schema after a step of a query. What it cannot follow is free.
    fn step(self, step: &QueryNode) -> Child<'a> {
        let Child::Node(node) = self else {
            return self;
        };
        let item = match &node.items {
            Some(items) => Child::Node(items),
            None if node.types.takes(Types::ARRAY) => Child::Free,
            None => Child::Unknown,
        };
        match (step, &node.additional) {
            (QueryNode::Field(name), _) => node.child(name),
            (QueryNode::Every, Some(values)) => Child::Node(values),
            (QueryNode::Every | QueryNode::Item(_) | QueryNode::Slice(_), _) => item,
            // The items may have a schema without the fields of the filter.
            (QueryNode::Where(filter), _) => match filter.left.iter().fold(item, Child::step) {
                Child::Unknown => Child::Unknown,
                Child::Free | Child::Node(_) => item,
            },
            (QueryNode::Union(parts), _) => {
                let ends = |part: &Vec<QueryNode>| part.iter().fold(self, Child::step);
                let mut ends = parts.iter().map(ends);
                ends.find(|end| !matches!(end, Child::Unknown))
                    .unwrap_or(Child::Unknown)
            }
            (QueryNode::Descend | QueryNode::Literal(_) | QueryNode::Integer(_), _) => Child::Free,
            (QueryNode::Word(_), _) => Child::Unknown,
        }
    }
}

#[cfg(test)]
mod tests;
