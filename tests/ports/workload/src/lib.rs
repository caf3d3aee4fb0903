//! Workload in two versions, with a Scale.

#[rustfmt::skip]
pub mod generated;
pub mod v1;
pub mod v1beta1;

apiloom::group! { name = "work.example.com", versions = [v1, v1beta1] }
