//! The object model: metadata, kinds, selectors, Status, Quantity, schema, patch, codecs.
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
#[cfg(feature = "schema")]
mod budget;
pub mod bytes;
pub mod codec;
#[doc(hidden)]
pub mod codegen;
pub mod convert;
pub mod edit;
pub mod error;
pub mod field;
pub mod fields;
pub mod go_value;
pub mod gvk;
mod hooks;
mod index_keys;
pub mod interrupt;
pub mod kind;
mod labels;
pub mod managed_fields;
pub mod names;
mod number;
pub mod object;
#[cfg(feature = "patch")]
pub mod patch;
pub mod path;
#[cfg(test)]
mod processor_time;
pub mod protobuf;
pub mod query;
#[cfg(feature = "schema")]
pub mod regexp;
pub mod schema;
pub mod selector;
pub mod testing;
mod transcode;
pub mod types;
pub mod validation;

pub use convert::{ConvertError, ConvertFrom};
pub use error::{ApiError, StatusReason};
pub use field::{FieldError, FieldErrorKind, FieldPath};
pub use gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use kind::{GroupDef, Resource, ResourceDef};
pub use object::Object;
pub use path::JsonPath;
pub use query::JsonQuery;
pub use types::*;
