//! The group autoscaling. It has no resource of its own: Scale is the form of the subresource `scale` of other kinds.

pub mod v1;

apiloom_macros::group! { name = "autoscaling", versions = [v1], crate = apiloom_meta }
