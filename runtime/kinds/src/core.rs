//! The core group, whose name is empty.

#[cfg(feature = "rules")]
pub(crate) mod rules;
pub mod v1;

apiloom_macros::group! { name = "", versions = [v1], crate = apiloom_meta }
