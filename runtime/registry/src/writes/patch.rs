//! patch: changes parts of the present object, in the version of the request. After a conflict the patch is applied
//! again, to the new object.

use apiloom_meta::codec;
use apiloom_meta::field::MAX_SHOWN_BYTES;
use apiloom_meta::patch::Patch;
use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, FieldError, FieldPath, GroupKind, Object};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};

use super::change::{Change, Input};
use super::request::WriteRequest;
use super::results::WrittenObject;
use super::{Writes, managed};
use crate::error::refused_patch;
use crate::large::check_wanted;

/// The patch of a request.
struct Patching<'a>(&'a Patch);

impl Writes {
    /// Patches an object, or the fields of a subresource.
    ///
    /// # Errors
    /// Those of patch in the API, such as NotFound, BadRequest, Invalid and Conflict.
    pub async fn patch(
        &self,
        request: WriteRequest<'_>,
        patch: &Patch,
    ) -> Result<WrittenObject, ApiError> {
        let (written, _) = self.write(request, &Patching(patch)).await?;
        Ok(written)
    }
}

impl Change for Patching<'_> {
    fn on_present<'a>(
        &'a self,
        writes: &'a Writes,
        request: WriteRequest<'a>,
        present: &'a Object,
    ) -> BoxFuture<'a, Result<Input, ApiError>> {
        let patched = self.patched(writes, request, present);
        let input = patched.map(|object| Input {
            is_patched: true,
            ..Input::new(object)
        });
        ready(input).boxed()
    }
}

impl Patching<'_> {
    /// Applies the patch to the present object. A resourceVersion that the patch sets is a precondition of the write.
    fn patched(
        &self,
        writes: &Writes,
        request: WriteRequest<'_>,
        present: &Object,
    ) -> Result<Object, ApiError> {
        let Self(patch) = self;
        let decoder = &writes.decoder;
        let mut object = present.clone();
        // Patches work on trees, and most of them are about other fields.
        let managed = if patch.may_touch_managed_fields() {
            None
        } else {
            managed::take(&mut object)
        };
        let mut value = object.into_tree();
        let schema = writes.resource.schema();
        patch
            .apply(schema, &mut value)
            .map_err(|e| refused_patch(&e))?;
        // What was interrupted is a part of the result, for which it is not to be refused.
        let refuse = |why: String| match check_wanted() {
            Ok(()) => refused_result(schema, present, patch, &why),
            Err(interrupted) => interrupted,
        };
        check_wanted()?;
        let (mut object, strict) = decoder.decode_result(value).map_err(refuse)?;
        managed::put(&mut object, managed);
        let strict = [patch.strict(), &strict].concat();
        decoder
            .report(request.ctx, &strict, request.validation)
            .map_err(refuse)?;
        decoder.match_url(request, object)
    }
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
        let json = codec::Encoder::json_prefix(&value, MAX_SHOWN_BYTES + 1);
        FieldError::invalid(&path, json, why)
    };
    ApiError::invalid(&GroupKind::default(), "", &[error])
}
