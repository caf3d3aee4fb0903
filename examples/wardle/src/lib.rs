//! The twin of Kubernetes' sample-apiserver: two kinds, two versions, conversion, validation and an admission plugin.

pub mod ban_flunder;
#[rustfmt::skip]
pub mod generated;
pub mod v1alpha1;
pub mod v1beta1;

use apiloom::prelude::*;

apiloom::group! { name = "wardle.example.com", versions = [v1beta1, v1alpha1], release = "1.2" }

/// What the server has besides its kinds: the admission plugin.
pub fn configure(builder: Builder) -> Builder {
    builder.admission(|context| ban_flunder::BanFlunder(context.lister()))
}
