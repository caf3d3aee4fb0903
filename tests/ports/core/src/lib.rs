//! Kinds of the core group in two versions, beside the namespaces that every server has.

#[rustfmt::skip]
pub mod generated;
pub mod v1;
pub mod v1beta1;

apiloom::group! { name = "", versions = [v1, v1beta1] }
