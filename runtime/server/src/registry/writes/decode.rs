//! Decodes request bodies to objects of the version in the URL. Error messages are those of kube-apiserver.

use std::sync::Arc;

use apiloom_meta::codec::{self, DecodeError, Format, MAX_EXPANDED_BYTES};
use apiloom_meta::field::{echoed, go_quote};
use apiloom_meta::{ApiError, FieldError, FieldPath, GroupKind, GroupVersion, Object, ResourceDef};
use serde_json::{Map, Value};

use super::Writes;
use crate::registry::error::{no_type, type_word, unrecognized};
use crate::registry::options::{FieldValidation, RequestContext};

impl Writes {
    /// Decodes a body, defaults and checks its apiVersion and kind, and handles unknown and duplicate fields as
    /// `validation` says.
    ///
    /// # Errors
    /// BadRequest with kube-apiserver's message; RequestEntityTooLarge if YAML aliases expand the body beyond
    /// [`MAX_EXPANDED_BYTES`].
    pub fn decode(
        &self,
        ctx: &RequestContext,
        body: &[u8],
        format: Format,
        validation: FieldValidation,
    ) -> Result<Object, ApiError> {
        if body.iter().all(u8::is_ascii_whitespace) && format == Format::Json {
            return Err(self.unrecognized(
                "couldn't get version/kind; json parse error: unexpected end of JSON input",
                body,
            ));
        }
        let decoded = match codec::decode(body, format, self.resource.schema()) {
            Ok(decoded) => decoded,
            Err(DecodeError::Syntax(text)) if format == Format::Json => {
                return Err(self.unrecognized(
                    &format!("couldn't get version/kind; json parse error: {text}"),
                    body,
                ));
            }
            Err(DecodeError::Syntax(text)) => {
                let why = text.strip_prefix("error converting YAML to JSON: ");
                return Err(self.unrecognized(why.unwrap_or(&text), body));
            }
            Err(DecodeError::Type(text)) => return Err(self.mistyped(&text, body, format)),
            Err(DecodeError::TooLarge) => return Err(ApiError::too_large(MAX_EXPANDED_BYTES)),
        };
        let mut object = self.object_of(decoded.value, body)?;
        self.check_type(&mut object, body)?;
        self.report(ctx, &decoded.strict, validation)
            .map_err(|text| {
                self.cannot_handle(
                    &self.resource.def().kind,
                    &self.resource.def().version,
                    &text,
                )
            })?;
        object.drop_empty_metadata();
        Ok(object)
    }

    /// As [`decode`](Self::decode), for a document of this kind in memory.
    ///
    /// # Errors
    /// BadRequest with kube-apiserver's message.
    #[cfg(feature = "apis-apiextensions")]
    pub(crate) fn decode_tree(
        &self,
        ctx: &RequestContext,
        document: Value,
        validation: FieldValidation,
    ) -> Result<Object, ApiError> {
        let def = self.resource.def();
        let refuse = |why: &str| self.cannot_handle(&def.kind, &def.version, why);
        let (object, strict) = self.decode_result(document).map_err(|why| refuse(&why))?;
        self.report(ctx, &strict, validation)
            .map_err(|why| refuse(&why))?;
        Ok(object)
    }

    /// Ignores, reports as warnings or refuses unknown and duplicate fields. The error is the message of the refusal.
    pub(crate) fn report(
        &self,
        ctx: &RequestContext,
        strict: &[String],
        validation: FieldValidation,
    ) -> Result<(), String> {
        match validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => strict.iter().for_each(|text| ctx.warn(text.as_str())),
            FieldValidation::Strict if strict.is_empty() => {}
            FieldValidation::Strict => {
                return Err(format!("strict decoding error: {}", strict.join(", ")));
            }
        }
        Ok(())
    }

    /// Makes an object of a decoded body. `null` is an empty object, as in Go.
    fn object_of(&self, value: Value, body: &[u8]) -> Result<Object, ApiError> {
        match value {
            Value::Object(fields) => Ok(Object::new(fields)),
            Value::Null => Ok(Object::new(Map::new())),
            other => Err(self.no_type(&other, body)),
        }
    }

    /// The error for a document that is not a JSON object.
    fn no_type(&self, value: &Value, body: &[u8]) -> ApiError {
        self.unrecognized(&no_type(value), body)
    }

    /// The error for a value of the wrong type. A wrong apiVersion or kind is reported instead of it, if there is one.
    fn mistyped(&self, text: &str, body: &[u8], format: Format) -> ApiError {
        let value = codec::decode_value(body, format).unwrap_or_default();
        for field in ["apiVersion", "kind"] {
            if let Some(found) = value.get(field).filter(|v| !v.is_string() && !v.is_null()) {
                let found = type_word(found);
                let text = format!(
                    "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go struct field .{field} of type string"
                );
                return self.unrecognized(&text, body);
            }
        }
        let checked = self.object_of(value, body).and_then(|mut object| {
            self.check_type(&mut object, body)?;
            Ok(object)
        });
        match checked {
            Ok(_) => self.cannot_handle(
                &self.resource.def().kind,
                &self.resource.def().version,
                text,
            ),
            Err(error) => error,
        }
    }

    /// Checks apiVersion and kind of an object, and sets them if they are absent.
    pub(crate) fn check_type(&self, object: &mut Object, body: &[u8]) -> Result<(), ApiError> {
        if self.resource.def().custom.is_some() {
            self.check_custom_type(object, body)?;
        }
        let expected = self.resource.version().api_version.as_str();
        let given = if object.api_version().is_empty() {
            expected
        } else {
            object.api_version()
        };
        let kind = if object.kind().is_empty() {
            &*self.resource.def().kind
        } else {
            object.kind()
        };
        if given == expected && kind == self.resource.def().kind {
            object.set_type(expected, &self.resource.def().kind);
            return Ok(());
        }
        let Some(gv) = GroupVersion::parse(given) else {
            return Err(
                self.unrecognized(&format!("unexpected GroupVersion string: {given}"), body)
            );
        };
        Err(self.wrong_type(&gv, given, kind))
    }

    /// Checks that an object of a custom resource names its type, and the kind of the request.
    fn check_custom_type(&self, object: &Object, body: &[u8]) -> Result<(), ApiError> {
        let text = String::from_utf8_lossy(body);
        for (field, given) in [
            ("Kind", object.kind()),
            ("apiVersion", object.api_version()),
        ] {
            if given.is_empty() {
                let message = format!("Object '{field}' is missing in '{}'", echoed(&text));
                return Err(if field == "Kind" && !body.is_empty() {
                    self.unrecognized(&message, body)
                } else {
                    ApiError::bad_request(message)
                });
            }
        }
        let version = self.resource.version();
        if object.api_version() != version.api_version {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({}) does not match the expected API version ({})",
                object.api_version(),
                version.api_version
            )));
        }
        let kind = &*self.resource.def().kind;
        if object.kind() != kind {
            let why = format!("must be {kind}");
            let error = FieldError::invalid(&FieldPath::new("kind"), object.kind(), &why);
            let given = GroupKind {
                group: self.resource.group_kind().group.clone(),
                kind: object.kind().into(),
            };
            return Err(ApiError::invalid(&given, object.name(), &[error]));
        }
        Ok(())
    }

    fn wrong_type(&self, gv: &GroupVersion, given: &str, kind: &str) -> ApiError {
        let registered = |def: &Arc<ResourceDef>| {
            let is_kind = def.kind == kind || def.list_kind == kind;
            is_kind && def.group == gv.group && def.version == gv.version
        };
        if !self.settings.registered.load().iter().any(registered) {
            let scheme = "in scheme \"apiloom\"";
            let text = format!(
                "no kind {} is registered for version {} {scheme}",
                go_quote(kind),
                go_quote(given)
            );
            return self.cannot_handle(kind, &gv.version, &text);
        }
        if kind == self.resource.def().kind && gv.group == self.resource.def().group {
            return ApiError::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version ({})",
                self.resource.version().api_version
            ));
        }
        let package = self
            .resource
            .def()
            .group
            .split('.')
            .next()
            .filter(|p| !p.is_empty())
            .unwrap_or("core");
        let target = &self.resource.def().kind;
        let text = format!(
            "converting ({}.{kind}) to ({package}.{target}): unknown conversion",
            gv.version
        );
        self.cannot_handle(kind, &gv.version, &text)
    }

    /// The error `Flunder in version "v1" cannot be handled as a Flunder: WHY`.
    pub(crate) fn cannot_handle(&self, kind: &str, version: &str, why: &str) -> ApiError {
        let expected = &self.resource.def().kind;
        ApiError::bad_request(format!(
            "{kind} in version {} cannot be handled as a {expected}: {why}",
            go_quote(version)
        ))
    }

    fn unrecognized(&self, why: &str, body: &[u8]) -> ApiError {
        unrecognized(&self.resource.def().kind, why, body)
    }
}
