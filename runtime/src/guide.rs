//! What one writes by hand beside annotated types, each with an example: no code lives here.

#[doc = include_str!("docs/conversion.md")]
pub mod conversion {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/strategy.md")]
pub mod strategy {}

#[cfg(feature = "server")]
#[doc = include_str!("docs/admission.md")]
pub mod admission {}
