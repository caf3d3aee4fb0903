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
//! and, with the feature `server`, `storage` (bytes with revisions) and `server` (registry, HTTP, options). It exports the
//! names that programs need, one a line; a name that is missing is added there. What one writes
//! by hand beside the types (conversion, rules of a kind, admission, users and permissions) is explained in the [`guide`].
//!
//! The features `server` and `mimalloc` are on by default. A package that has kinds and no server needs neither
//! (`default-features = false`).

#[cfg(any(
    feature = "server",
    feature = "apis-apiextensions",
    feature = "apis-coordination",
    feature = "apis-core"
))]
pub mod apis;
#[cfg(feature = "client")]
pub mod client;
#[doc(hidden)]
pub mod codegen;
pub mod guide;
pub mod meta;
pub mod prelude;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod storage;
pub mod testing;

#[cfg(feature = "client")]
pub use apiloom_client::signals;
#[doc = include_str!("docs/derive.md")]
pub use apiloom_macros::Resource;
#[doc = include_str!("docs/api.md")]
pub use apiloom_macros::api;
#[doc = include_str!("docs/group.md")]
pub use apiloom_macros::group;
#[doc = include_str!("docs/resource.md")]
pub use apiloom_macros::resource;
#[cfg(feature = "testing")]
#[doc = include_str!("docs/test.md")]
pub use apiloom_macros::test;
pub use apiloom_meta::ApiError;
pub use apiloom_meta::ConvertError;
pub use apiloom_meta::ConvertFrom;
pub use apiloom_meta::FieldError;
pub use apiloom_meta::FieldErrorKind;
pub use apiloom_meta::FieldPath;
pub use apiloom_meta::GroupDef;
pub use apiloom_meta::Object;
pub use apiloom_meta::Resource;
pub use apiloom_meta::ResourceDef;
