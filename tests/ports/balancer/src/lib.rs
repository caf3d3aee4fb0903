//! Balancer in three versions: v1 is the hub and is stored, v1beta1 and v1alpha1 say less and have fewer rules.

#[rustfmt::skip]
pub mod generated;
pub mod v1;
pub mod v1alpha1;
pub mod v1beta1;

apiloom::group! { name = "lb.example.com", versions = [v1, v1beta1, v1alpha1] }
