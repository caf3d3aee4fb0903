//! Routes of HTTP requests, as the Gateway API defines them.

#[rustfmt::skip]
pub mod generated;
pub mod v1;

apiloom::group! { name = "gateway.networking.k8s.io", versions = [v1] }
