//! A kind that has a field of each shape that is seldom, as Kubernetes' own APIs have them here and there.

#[rustfmt::skip]
pub mod generated;
pub mod v1;

apiloom::group! { name = "shapes.example.com", versions = [v1] }
