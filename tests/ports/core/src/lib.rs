//! Kinds of the core group in two versions, beside the namespaces that every server has.

#[rustfmt::skip]
pub mod generated;
pub mod v1;
pub mod v1beta1;

use apiloom::prelude::*;

apiloom::group! { name = "", versions = [v1, v1beta1] }

/// What the server has besides its kinds: the grace periods of pods.
pub fn configure(builder: Builder) -> Builder {
    builder.strategy::<v1::Pod>(v1::PodRules)
}
