//! Kubernetes' structural schemas: building, checks, pruning, defaults, validation, list topology, and their CRD and OpenAPI forms;
//! with what they stand on: errors of fields, names, paths, patterns, and the types of formats.
//!
//! ```
//! # #[cfg(feature = "build")] {
//! use apiloom_schema::Schema;
//! use serde_json::json;
//!
//! // What a CustomResourceDefinition has as `openAPIV3Schema`.
//! let schema = Schema::of_custom_resource(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
//!     "replicas": {"type": "integer", "default": 1, "maximum": 9},
//! }}}}))
//! .expect("a structural schema");
//! let mut document = json!({"apiVersion": "example.com/v1", "kind": "Shelf", "metadata": {"name": "a"}, "spec": {"size": 3}});
//! schema.prune(&mut document);
//! schema.default(&mut document);
//! assert_eq!(document["spec"], json!({"replicas": 1}));
//! document["spec"]["replicas"] = json!(10);
//! let errors = schema.validate(&document);
//! let expected = "spec.replicas: Invalid value: 10: spec.replicas in body should be less than or equal to 9";
//! assert_eq!(errors[0].to_string(), expected);
//! # }
//! ```
//!
//! No I/O, no async: all functions depend only on their input. Invariant: malformed input gives an error that names the field, never
//! a panic. The invariants of the schemas are at the head of `engine/mod.rs`.
//!
//! The feature `build`, on by default, has what makes schemas. Without it there is only the tree, which codecs walk: a client alone is
//! built so.

#![cfg_attr(
    not(feature = "build"),
    allow(
        dead_code,
        reason = "of the tree and its walks, some parts are only for schemas that are built"
    )
)]

mod api_type;
#[cfg(feature = "build")]
mod budget;
pub mod bytes;
mod engine;
pub mod field;
pub mod go_value;
mod hooks;
pub mod interrupt;
pub mod names;
pub mod number;
pub mod path;
pub mod protobuf;
pub mod query;
#[cfg(feature = "build")]
pub mod regexp;
pub mod types;

pub use api_type::ApiType;
#[doc(hidden)]
pub use engine::tree;
pub use engine::{CrdSchema, DefaultsTooLarge, Metadata, Schema, SchemaErrors, merge_difference};
#[cfg(feature = "build")]
pub use engine::{Digests, StoredSchema, has_format, plain_text, structural};
pub use engine::{conceal, conceal_steps};
pub use field::{FieldError, FieldErrorKind, FieldPath};
pub use hooks::{CheckFn, DefaultFn, Hooks};
pub use path::JsonPath;
pub use query::JsonQuery;
