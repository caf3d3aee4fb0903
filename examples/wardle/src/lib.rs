//! The twin of Kubernetes' sample-apiserver: two kinds, two versions, conversion, validation and an admission plugin.

pub mod ban_flunder;
#[rustfmt::skip]
pub mod generated;
pub mod v1alpha1;
pub mod v1beta1;

use apiloom::prelude::*;

apiloom::group! { name = "wardle.example.com", versions = [v1beta1, v1alpha1], release = "1.2" }

/// What the server has besides its kinds: the admission plugins.
pub fn configure(builder: Builder) -> Builder {
    let builder = builder.admission(|context| ban_flunder::BanFlunder(context.lister()));
    builder.admission(|_| KeepAnnotated)
}

/// The annotation of objects that cannot be deleted.
const KEEP: &str = "wardle.example.com/keep";

/// The admission plugin KeepAnnotated; it refuses to delete objects with the annotation [`KEEP`].
struct KeepAnnotated;

#[async_trait]
impl Admission for KeepAnnotated {
    fn name(&self) -> &'static str {
        "KeepAnnotated"
    }
    async fn validate(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        let old = request.old_object;
        let is_kept = old.is_some_and(|object| object.annotation(KEEP).is_some());
        if request.operation == Operation::Delete && is_kept {
            return Err(request.forbidden("its annotation wardle.example.com/keep protects it"));
        }
        Ok(())
    }
}
