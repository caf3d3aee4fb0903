//! The group coordination.k8s.io.

pub mod v1;

apiloom_macros::group! { name = "coordination.k8s.io", versions = [v1], crate = apiloom_meta }
