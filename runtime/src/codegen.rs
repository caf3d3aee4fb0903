//! The items that macro expansions and generated code use. Not a public API: only [`CONTRACT`] is guaranteed.
//!
//! What expansions use is in `apiloom_meta::codegen`; the additions here are for the generated server.

#[cfg(feature = "server")]
mod allocator;
#[cfg(feature = "server")]
mod serving;

pub use apiloom_meta::codegen::*;

#[cfg(feature = "server")]
pub use crate::__allocator as allocator;
#[cfg(feature = "server")]
pub use crate::__serve as serve;
#[cfg(feature = "server")]
pub use allocator::{ALLOCATOR, Allocator};
#[cfg(feature = "server")]
pub use apiloom_server::http::connect_subresource;
#[cfg(feature = "server")]
pub use apiloom_server::registry::subresource_verbs;
#[cfg(feature = "paused-time")]
pub use apiloom_testing::run_paused as run_paused_test;
#[cfg(feature = "testing")]
pub use apiloom_testing::{run as run_test, unwrap_built};
#[cfg(all(feature = "server", feature = "apis-apiextensions"))]
pub use serving::serve_definitions;
#[cfg(feature = "server")]
pub use serving::{HAS_BUILT_IN, main};

/// The kind of the request bodies of a handler.
#[cfg(feature = "server")]
pub type InputOf<K, H> = <H as apiloom_server::Subresource<K>>::Input;
/// What a handler responds with.
#[cfg(feature = "server")]
pub type OutputOf<K, H> = <H as apiloom_server::Subresource<K>>::Output;

/// The version of this interface. It changes whenever older generated code would not fit; generated files check it.
pub const CONTRACT: u32 = 1;
