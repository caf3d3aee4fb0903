//! The core group, whose name is empty.

pub mod v1;

apiloom_macros::group! { name = "", versions = [v1], crate = apiloom_meta }
