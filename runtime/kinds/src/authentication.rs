//! The group authentication.k8s.io.

#[cfg(feature = "rules")]
mod rules;
pub mod v1;

#[cfg(all(feature = "core", feature = "rules"))]
pub use self::rules::{ServiceAccountTokens, TokenIssuer};

apiloom_macros::group! { name = "authentication.k8s.io", versions = [v1], crate = apiloom_meta }
