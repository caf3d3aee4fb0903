//! patch: parts of the present object changed, in the version of the request; applied anew when the object moved on.

use apiloom_meta::codec;
use apiloom_meta::patch::Patch;
use apiloom_meta::{ApiError, FieldError, FieldPath, GroupKind, Object};

use super::Writes;
use super::target::Target;
use super::update::Change;
use super::written::Written;
use crate::registry::error::refused_patch;
use crate::registry::options::{FieldValidation, PatchOptions, RequestContext};

impl Writes {
    /// Patches an object or its status; re-applied to the fresh object on a race.
    ///
    /// # Errors
    /// The errors of the API's patch.
    pub async fn patch(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
        subresource: &str,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<Written, ApiError> {
        let target = Target {
            ctx,
            namespace,
            name,
            subresource,
            dry_run: options.dry_run,
        };
        let (written, _) = self
            .write(target, &Change::Patch(patch, options.field_validation))
            .await?;
        Ok(written)
    }

    /// The present object with the patch applied. The resourceVersion in it is the present one unless the patch sets
    /// another, which thereby becomes a precondition.
    pub(crate) fn patched(
        &self,
        target: Target<'_>,
        old: &Object,
        patch: &Patch,
        validation: FieldValidation,
    ) -> Result<Object, ApiError> {
        let mut value = old.clone().into_value();
        patch.apply(&mut value).map_err(|e| refused_patch(&e))?;
        let refuse = |why: &str| refused_result(old, patch, why);
        let decoded = codec::decode_document(value, self.resource.schema());
        let decoded = decoded.map_err(|e| refuse(&e.to_string()))?;
        let mut object = Object::from_value(decoded.value)
            .ok_or_else(|| refuse("the result is not an object"))?;
        self.check_type(&mut object, b"")
            .map_err(|e| refuse(&e.message))?;
        let strict = [patch.strict(), &decoded.strict].concat();
        self.report(target.ctx, &strict, validation)
            .map_err(|text| refuse(&text))?;
        object.drop_empty_metadata();
        self.match_name(&object, target.name)?;
        self.match_namespace(&mut object, target.namespace)?;
        Ok(object)
    }
}

/// The API's error for a patch whose result is no object of the kind; shows the result, which is made once more for it.
fn refused_result(old: &Object, patch: &Patch, why: &str) -> ApiError {
    let mut value = old.clone().into_value();
    if let Err(error) = patch.apply(&mut value) {
        return refused_patch(&error);
    }
    let json = codec::encode_json(&value);
    let path = FieldPath::new("patch");
    let error = FieldError::invalid(&path, String::from_utf8_lossy(&json), why);
    ApiError::invalid(&GroupKind::default(), "", &[error])
}
