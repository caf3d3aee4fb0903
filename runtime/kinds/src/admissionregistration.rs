//! The group admissionregistration.k8s.io.

#[cfg(feature = "rules")]
pub mod rules;
pub mod v1;

apiloom_macros::group! { name = "admissionregistration.k8s.io", versions = [v1], crate = apiloom_meta }
