//! Kubernetes-style API servers in Rust: annotate types, get a server that kubectl works with.
//!
//! ```
//! use apiloom::prelude::*;
//!
//! /// A greeting.
//! #[apiloom::resource(group = "example.com", version = "v1", namespaced, shortname = "hi",
//!     printcolumn(name = "To", path = spec.to))]
//! pub struct Greeting {
//!     pub metadata: ObjectMeta,
//!     pub spec: GreetingSpec,
//! }
//!
//! #[apiloom::api]
//! pub struct GreetingSpec {
//!     /// Who is greeted.
//!     #[api(len = 1..=63)]
//!     pub to: String,
//! }
//!
//! assert_eq!(Greeting::definition().plural, "greetings");
//! ```
//!
//! This crate is the facade that users and generated code name. What is behind it: [`meta`] (objects, schemas, codecs)
//! and, with the feature `server`, `storage` (bytes with revisions) and `server` (registry, HTTP, options). What one writes
//! by hand beside the types (conversion, rules of a kind, admission, users and permissions) is explained in the [`guide`].

#[doc(hidden)]
pub mod codegen;
pub mod guide;
pub mod prelude;

#[doc = include_str!("docs/derive.md")]
pub use apiloom_macros::Resource;
#[doc = include_str!("docs/api.md")]
pub use apiloom_macros::api;
#[doc = include_str!("docs/group.md")]
pub use apiloom_macros::group;
#[doc = include_str!("docs/resource.md")]
pub use apiloom_macros::resource;
#[doc(no_inline)]
pub use apiloom_meta as meta;
#[doc(no_inline)]
pub use apiloom_meta::testing;
#[doc(no_inline)]
pub use apiloom_meta::{
    ApiError, ConvertError, ConvertFrom, FieldError, FieldErrorKind, FieldPath, GroupDef, Object,
    Resource, ResourceDef,
};
#[cfg(feature = "server")]
#[doc(no_inline)]
pub use apiloom_storage as storage;

// The kinds that every server has.
#[cfg(feature = "server")]
#[doc(no_inline)]
pub use apiloom_apis as apis;

// The server, for users and for generated code.
#[cfg(feature = "server")]
#[doc(no_inline)]
pub use apiloom_server as server;
