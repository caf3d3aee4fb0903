//! patch: changes parts of the present object, in the version of the request. After a conflict the patch is applied
//! again, to the new object.

use apiloom_meta::codec;
use apiloom_meta::patch::Patch;
use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, FieldError, FieldPath, GroupKind, Object};
use serde_json::Value;

use super::Writes;
use super::decode::{mistyped_type, unreadable_type};
use super::managed;
use super::results::WrittenObject;
use super::target::Target;
use super::update::Change;
use crate::registry::error::{no_type, refused_patch};
use crate::registry::large::check_wanted;
use crate::registry::options::{FieldValidation, PatchOptions, RequestContext};

impl Writes {
    /// Patches an object, or the fields of a subresource if `subresource` is not empty.
    ///
    /// # Errors
    /// Those of patch in the API, such as NotFound, BadRequest, Invalid and Conflict.
    pub async fn patch(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
        subresource: &str,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<WrittenObject, ApiError> {
        let target = Target::of_write(ctx, namespace, name, subresource, options);
        let (written, _) = self
            .write(target, &Change::Patch(patch, options.field_validation))
            .await?;
        Ok(written)
    }

    /// Applies the patch to the present object. A resourceVersion that the patch sets is a precondition of the write.
    pub(crate) fn patched(
        &self,
        target: Target<'_>,
        old: &Object,
        patch: &Patch,
        validation: FieldValidation,
    ) -> Result<Object, ApiError> {
        let mut object = old.clone();
        // Patches work on trees, and most of them are about other fields.
        let managed = if patch.may_touch_managed_fields() {
            None
        } else {
            managed::take(&mut object)
        };
        let mut value = object.into_tree();
        let schema = self.resource.schema();
        patch
            .apply(schema, &mut value)
            .map_err(|e| refused_patch(&e))?;
        // What was interrupted is a part of the result, for which it is not to be refused.
        let refuse = |why: &str| match check_wanted() {
            Ok(()) => refused_result(schema, old, patch, why),
            Err(interrupted) => interrupted,
        };
        check_wanted()?;
        let (mut object, strict) = self.decode_result(value).map_err(|why| refuse(&why))?;
        managed::put(&mut object, managed);
        let strict = [patch.strict(), &strict].concat();
        self.report(target.ctx, &strict, validation)
            .map_err(|text| refuse(&text))?;
        self.match_target(target, object)
    }

    /// Decodes the result of a patch, a tree, by the schema. Returns the problems of strict validation too.
    ///
    /// # Errors
    /// Why it cannot be decoded.
    pub(crate) fn decode_result(&self, value: Value) -> Result<(Object, Vec<String>), String> {
        if !value.is_object() {
            return Err(no_type(&value));
        }
        if let Some(why) = mistyped_type(&value) {
            return Err(why);
        }
        let decoded =
            codec::decode_document_in(value, self.resource.schema(), &self.resource.def().version);
        let decoded = decoded.map_err(|error| error.to_string())?;
        let mut object = Object::from_value(decoded.value)
            .ok_or_else(|| "the result is not an object".to_owned())?;
        if self.resource.def().custom.is_none() {
            self.check_type(&mut object, &[])
                .map_err(|error| error.message)?;
        } else if let Some(why) = unreadable_result(&object) {
            return Err(why);
        }
        object.drop_empty_metadata();
        let strict = self.strict_of(&object, decoded.strict);
        Ok((object, strict))
    }

    /// Checks the name and the namespace of the result of a patch.
    pub(crate) fn match_target(
        &self,
        target: Target<'_>,
        mut object: Object,
    ) -> Result<Object, ApiError> {
        self.match_name(&object, target.name)?;
        self.match_namespace(&mut object, target.namespace)?;
        Ok(object)
    }
}

/// Why the type of an object of a custom resource cannot be read, which shows the object. A type of another kind is an error of its
/// validation.
fn unreadable_result(object: &Object) -> Option<String> {
    let is_shown = object.kind().is_empty();
    let json = is_shown.then(|| codec::encode_json(object.as_value()));
    unreadable_type(object, json.as_deref().unwrap_or_default())
}

/// The error for a patch whose result is not a valid object of the kind. It contains the result, for which the patch is
/// applied again, or a strategic merge patch itself.
fn refused_result(schema: &Schema, old: &Object, patch: &Patch, why: &str) -> ApiError {
    let path = FieldPath::new("patch");
    let error = if let Some(document) = patch.strategic_document() {
        FieldError::invalid(&path, document, why)
    } else {
        let mut value = old.clone().into_tree();
        if let Err(error) = patch.apply(schema, &mut value) {
            return refused_patch(&error);
        }
        let json = codec::encode_json(&value);
        FieldError::invalid(&path, String::from_utf8_lossy(&json), why)
    };
    ApiError::invalid(&GroupKind::default(), "", &[error])
}
