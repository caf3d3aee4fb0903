//! The object model: metadata, kinds, selectors, Status, patch, codecs. Schemas, and what they stand on, such as errors of fields, are
//! those of `apiloom-schema`.
//!
//! No I/O, no async, no HTTP: all functions depend only on their input. Invariant: malformed input gives an error that
//! names the field, never a panic.
//!
//! The features `patch`, `schema` and `yaml`, all on by default, are what servers and kinds need besides the types. A client
//! alone is built without them, and so with a quarter fewer crates.

#![cfg_attr(
    not(all(feature = "patch", feature = "schema", feature = "yaml")),
    allow(
        dead_code,
        reason = "of what several features share, some parts have only one user"
    )
)]

mod api_type;
pub mod codec;
#[doc(hidden)]
pub mod codegen;
pub mod convert;
pub mod edit;
pub mod error;
pub mod fields;
pub mod gvk;
mod index_keys;
#[cfg(test)]
#[cfg(all(feature = "patch", feature = "schema", feature = "yaml"))]
mod interrupt_tests;
pub mod kind;
mod labels;
pub mod managed_fields;
pub mod object;
#[cfg(feature = "patch")]
pub mod patch;
#[cfg(test)]
mod processor_time;
pub mod schema;
#[cfg(test)]
#[cfg(all(feature = "schema", feature = "yaml"))]
mod schema_tests;
pub mod selector;
pub mod testing;
mod transcode;
pub mod types;
pub mod validation;

#[cfg(feature = "schema")]
pub use apiloom_schema::regexp;
pub use apiloom_schema::{bytes, field, go_value, interrupt, names, path, protobuf, query};

pub use convert::{ConvertError, ConvertFrom};
pub use error::{ApiError, StatusReason};
pub use field::{FieldError, FieldErrorKind, FieldPath};
pub use gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use kind::{GroupDef, Resource, ResourceDef};
pub use object::Object;
pub use path::JsonPath;
pub use query::JsonQuery;
pub use types::*;
