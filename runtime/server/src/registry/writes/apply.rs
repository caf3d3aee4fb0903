//! apply: server-side apply of the fields of a manager (KEP-555).

use apiloom_meta::codec::{self, DecodeError, Format};
use apiloom_meta::go_value::mistyped;
use apiloom_meta::{ApiError, Object};
use serde_json::Value;

use super::Writes;
use super::decode::all_strict;
use super::field_manager::Applied;
use super::managed;
use super::results::WrittenObject;
use super::target::Target;
use super::update::Change;
use crate::registry::options::{FieldValidation, PatchOptions, RequestContext};

/// The document of an apply request.
pub struct AppliedDocument {
    object: Object,
    /// The duplicate fields.
    strict: Vec<String>,
}

/// An object with applied fields.
pub(crate) struct AppliedObject {
    pub(crate) object: Object,
    /// Whether it differs from the present object.
    pub(crate) is_changed: bool,
    /// Whether it has what decoding would drop: of a custom resource that is validated, and dropped before it is stored.
    pub(crate) is_unpruned: bool,
}

impl From<Object> for AppliedDocument {
    fn from(object: Object) -> Self {
        Self {
            object,
            strict: Vec::new(),
        }
    }
}

impl Writes {
    /// Decodes the body of an apply request, YAML or JSON.
    ///
    /// # Errors
    /// BadRequest with kube-apiserver's message.
    pub fn decode_applied(&self, body: &[u8]) -> Result<AppliedDocument, ApiError> {
        let malformed = |why: &str| ApiError::bad_request(format!("error decoding YAML: {why}"));
        let decoded = codec::decode_freely(body, Format::Yaml).map_err(|error| match error {
            DecodeError::TooLarge => ApiError::too_large(codec::MAX_EXPANDED_BYTES),
            error => malformed(&error.to_string()),
        })?;
        let mut object = match decoded.value {
            Value::Object(fields) => Object::new(fields),
            Value::Null => Object::default(),
            other => {
                return Err(malformed(&format!(
                    "error unmarshaling JSON: while decoding JSON: {}",
                    mistyped(&other, "map[string]interface {}")
                )));
            }
        };
        // Before the fields are named: values of sets are parts of their names.
        if self.resource.def().custom.is_some() {
            object.settle_numbers();
        }
        Ok(AppliedDocument {
            object,
            strict: decoded.strict,
        })
    }

    /// Reports duplicate fields of an applied document. kube-apiserver does so only when it could be applied.
    fn report_applied(&self, ctx: &RequestContext, applied: &Applied<'_>) -> Result<(), ApiError> {
        if applied.strict.is_empty() || applied.validation != FieldValidation::Strict {
            return self
                .report(ctx, applied.strict, applied.validation)
                .map_err(ApiError::bad_request);
        }
        let why = all_strict(applied.strict);
        Err(ApiError::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {why}"
        )))
    }

    /// Applies a document of a manager to an object, or creates the object. Returns `true` if it was created.
    ///
    /// # Errors
    /// Conflict if others own fields of the document with other values, unless `force`; those of update.
    #[allow(clippy::too_many_arguments, reason = "as update, and force")]
    pub async fn apply(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
        subresource: &str,
        document: &AppliedDocument,
        force: bool,
        options: &PatchOptions,
    ) -> Result<(WrittenObject, bool), ApiError> {
        let target = Target::of_write(ctx, namespace, name, subresource, options);
        let change = Change::Apply(Applied {
            document: &document.object,
            strict: &document.strict,
            validation: options.field_validation,
            force,
        });
        self.write(target, &change).await
    }

    /// The present object with the applied fields, decoded as the body of an update.
    pub(crate) async fn applied(
        &self,
        target: Target<'_>,
        applied: &Applied<'_>,
        live: Option<&Object>,
    ) -> Result<AppliedObject, ApiError> {
        let merged = self.apply_fields(target, applied, live).await?;
        self.report_applied(target.ctx, applied)?;
        let mut object = merged.object;
        let mut is_unpruned = false;
        if merged.is_changed {
            let schema = self.resource.schema();
            let is_custom = self.resource.def().custom.is_some();
            let is_copied = is_custom && schema.may_drop(object.fields());
            let whole = is_copied.then(|| object.clone());
            object = self.decoded_again(object)?;
            if let Some(whole) = whole {
                is_unpruned = schema.put_back_dropped(whole.fields(), object.fields_mut());
            }
        }
        if let Some(entries) = merged.managed {
            self.write_owners(entries, &mut object);
        }
        Ok(AppliedObject {
            object: self.match_target(target, object)?,
            is_changed: merged.is_changed,
            is_unpruned,
        })
    }

    /// An object with applied fields, decoded as the body of an update.
    pub(crate) fn decoded_again(&self, mut object: Object) -> Result<Object, ApiError> {
        let entries = managed::take(&mut object);
        let decoded = self.decode_result(object.into_tree());
        let (mut object, _) = decoded.map_err(|why| {
            ApiError::internal_text(format!("failed to convert the applied object: {why}"))
        })?;
        managed::put(&mut object, entries);
        Ok(object)
    }

    /// The object that an apply request creates.
    pub(crate) async fn created_by_apply(
        &self,
        target: Target<'_>,
        applied: &Applied<'_>,
    ) -> Result<AppliedObject, ApiError> {
        let created = self.applied(target, applied, None).await?;
        let uid = created.object.uid();
        if uid.is_empty() {
            return Ok(created);
        }
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        let resource = &self.resource.kind.resource;
        Err(ApiError::conflict(resource, target.name, &why))
    }
}
