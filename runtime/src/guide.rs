//! Guide to the code that users write beside annotated types, with examples: this module has no code.

#[doc = include_str!("docs/conversion.md")]
pub mod conversion {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/strategy.md")]
pub mod strategy {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/admission.md")]
pub mod admission {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/auth.md")]
pub mod auth {}

#[cfg(feature = "testing")]
#[doc = include_str!("docs/testing.md")]
pub mod testing {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/built_in.md")]
pub mod built_in {}

#[cfg(feature = "client")]
#[doc = include_str!("docs/controller.md")]
pub mod controller {}
