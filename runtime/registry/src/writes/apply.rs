//! apply: server-side apply of the fields of a manager (KEP-555).

use apiloom_meta::codec::{self, DecodeError, Format};
use apiloom_meta::go_value::mistyped;
use apiloom_meta::{ApiError, Object};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use serde_json::Value;

use super::Writes;
use super::change::{Change, Input, PassedStages};
use super::decode::{Decoder, all_strict};
use super::request::WriteRequest;
use super::results::WrittenObject;
use crate::options::FieldValidation;

/// The document of an apply request.
pub struct AppliedDocument {
    object: Object,
    /// The duplicate fields.
    strict: Vec<String>,
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
        let decoded =
            codec::Decoder::new(Format::Yaml)
                .decode(body)
                .map_err(|error| match error {
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
        if self.resource.def().dialect.settles_numbers {
            object.settle_numbers();
        }
        Ok(AppliedDocument {
            object,
            strict: decoded.strict,
        })
    }

    /// Applies a document of a manager to an object, or creates the object. Returns `true` if it was created.
    ///
    /// # Errors
    /// Conflict if others own fields of the document with other values, unless the options force it; those of update.
    pub async fn apply(
        &self,
        request: WriteRequest<'_>,
        document: &AppliedDocument,
    ) -> Result<(WrittenObject, bool), ApiError> {
        self.write(request, document).await
    }
}

impl Change for AppliedDocument {
    fn on_present<'a>(
        &'a self,
        writes: &'a Writes,
        request: WriteRequest<'a>,
        present: &'a Object,
    ) -> BoxFuture<'a, Result<Input, ApiError>> {
        self.applied(writes, request, Some(present)).boxed()
    }

    fn on_absent<'a>(
        &'a self,
        writes: &'a Writes,
        request: WriteRequest<'a>,
    ) -> BoxFuture<'a, Result<Option<Input>, ApiError>> {
        self.created(writes, request).map_ok(Some).boxed()
    }
}

impl AppliedDocument {
    /// The present object with the applied fields, decoded as the body of an update.
    async fn applied(
        &self,
        writes: &Writes,
        request: WriteRequest<'_>,
        present: Option<&Object>,
    ) -> Result<Input, ApiError> {
        let merged = writes.owners.apply_fields(request, &self.object, present);
        let merged = merged.await?;
        self.report(&writes.decoder, request)?;
        let mut object = merged.object;
        let mut is_unpruned = false;
        if merged.is_changed {
            let schema = writes.resource.schema();
            let is_kept = writes.resource.def().dialect.validates_dropped_fields;
            let is_copied = is_kept && schema.may_drop(object.fields());
            let whole = is_copied.then(|| object.clone());
            object = writes.decoder.decoded_again(object)?;
            if let Some(whole) = whole {
                is_unpruned = schema.put_back_dropped(whole.fields(), object.fields_mut());
            }
        }
        if let Some(entries) = merged.managed {
            writes.owners.write_owners(entries, &mut object);
        }
        Ok(Input {
            passed: PassedStages::Owners {
                is_changed: merged.is_changed,
            },
            is_unpruned,
            ..Input::new(writes.decoder.match_url(request, object)?)
        })
    }

    /// The object that the request creates.
    async fn created(&self, writes: &Writes, request: WriteRequest<'_>) -> Result<Input, ApiError> {
        let created = self.applied(writes, request, None).await?;
        let uid = created.object.uid();
        if uid.is_empty() {
            return Ok(created);
        }
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        let resource = &writes.resource.kind.resource;
        Err(ApiError::conflict(resource, request.name, &why))
    }

    /// Reports duplicate fields. kube-apiserver does so only when the document could be applied.
    fn report(&self, decoder: &Decoder, request: WriteRequest<'_>) -> Result<(), ApiError> {
        if self.strict.is_empty() || request.validation != FieldValidation::Strict {
            return decoder
                .report(request.ctx, &self.strict, request.validation)
                .map_err(ApiError::bad_request);
        }
        let why = all_strict(&self.strict);
        Err(ApiError::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {why}"
        )))
    }
}
