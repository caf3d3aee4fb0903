//! Jobs that run again and again, as kubebuilder's tutorial defines them.

#[rustfmt::skip]
pub mod generated;
pub mod v1;

apiloom::group! { name = "batch.tutorial.kubebuilder.io", versions = [v1] }
