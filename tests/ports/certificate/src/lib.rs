//! Certificates and how they are renewed, as cert-manager defines them.

#[rustfmt::skip]
pub mod generated;
pub mod v1;

apiloom::group! { name = "cert-manager.io", versions = [v1] }
