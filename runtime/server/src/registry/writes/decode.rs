//! Decodes request bodies to objects of the version in the URL. Error messages are those of kube-apiserver.

use std::sync::Arc;

use apiloom_meta::codec::{self, DecodeError, Format, MAX_EXPANDED_BYTES};
use apiloom_meta::field::go_quote;
use apiloom_meta::go_value::json_type;
use apiloom_meta::{ApiError, GroupVersion, Object, ResourceDef};
use serde_json::{Map, Value};

use super::Writes;
use crate::registry::error::{no_kind, no_type, unrecognized};
use crate::registry::options::{FieldValidation, RequestContext};

/// The versions of built-in kinds that kube-apiserver knows and does not serve any more: group, version and kind.
const RETIRED: [(&str, &str, &str); 4] = [
    (
        "apiextensions.k8s.io",
        "v1beta1",
        "CustomResourceDefinition",
    ),
    ("apiregistration.k8s.io", "v1beta1", "APIService"),
    ("coordination.k8s.io", "v1beta1", "Lease"),
    ("events.k8s.io", "v1beta1", "Event"),
];

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
        let version = &self.resource.def().version;
        let decoded = match codec::decode_in(body, format, self.resource.schema(), version) {
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
        let strict = self.strict_of(&object, decoded.strict);
        self.report(ctx, &strict, validation).map_err(|text| {
            self.cannot_handle(object.kind(), &self.resource.def().version, &text)
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

    /// The unknown and duplicate fields of an object that are told: of one that is not of the custom resource, which is refused when
    /// it is validated, kube-apiserver knows the fields of the metadata alone.
    pub(super) fn strict_of(&self, object: &Object, mut strict: Vec<String>) -> Vec<String> {
        let def = self.resource.def();
        let is_of_group =
            || GroupVersion::parse(object.api_version()).is_some_and(|gv| gv.group == def.group);
        if def.custom.is_some() && !(object.kind() == def.kind && is_of_group()) {
            strict.retain(|text| {
                !text.starts_with("unknown field ") || text.starts_with("unknown field \"metadata.")
            });
        }
        strict
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
                return Err(format!("strict decoding error: {}", all_strict(strict)));
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
        let Ok(value) = codec::decode_value(body, format) else {
            // A number that no type can hold, in a document that cannot be read otherwise.
            let def = self.resource.def();
            return self.cannot_handle(&def.kind, &def.version, text);
        };
        if let Some(text) = mistyped_type(&value) {
            return self.unrecognized(&text, body);
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

    /// Checks apiVersion and kind of an object, and sets them if they are absent. Another kind of a custom resource is an error of
    /// its validation, as in kube-apiserver.
    pub(crate) fn check_type(&self, object: &mut Object, body: &[u8]) -> Result<(), ApiError> {
        if self.resource.def().custom.is_some() {
            return self.check_custom_type(object, body);
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

    /// Checks that an object of a custom resource has a kind, and the apiVersion of the request.
    fn check_custom_type(&self, object: &Object, body: &[u8]) -> Result<(), ApiError> {
        if let Some(why) = unreadable_type(object, body) {
            return Err(if body.is_empty() {
                ApiError::bad_request(why)
            } else {
                self.unrecognized(&why, body)
            });
        }
        let version = self.resource.version();
        if object.api_version() != version.api_version {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({}) does not match the expected API version ({})",
                object.api_version(),
                version.api_version
            )));
        }
        Ok(())
    }

    fn wrong_type(&self, gv: &GroupVersion, given: &str, kind: &str) -> ApiError {
        let registered = |def: &Arc<ResourceDef>| {
            let is_kind = def.kind == kind || def.list_kind == kind;
            is_kind && def.group == gv.group && def.version == gv.version
        };
        let is_retired = self.resource.kind.is_own && is_retired(gv, kind);
        if !is_retired && !self.settings.registered.load().iter().any(registered) {
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

    /// The error `Flunder in version "v1" cannot be handled as a Flunder: WHY`. What kube-apiserver decodes a custom resource into is
    /// of the kind that the resource says.
    pub(crate) fn cannot_handle(&self, kind: &str, version: &str, why: &str) -> ApiError {
        let def = self.resource.def();
        let expected = def.custom.as_ref().map_or(&*def.kind, |_| kind);
        ApiError::bad_request(format!(
            "{kind} in version {} cannot be handled as a {expected}: {why}",
            go_quote(version)
        ))
    }

    fn unrecognized(&self, why: &str, body: &[u8]) -> ApiError {
        unrecognized(&self.resource.def().kind, why, body)
    }
}

/// Whether a kind, or that of its lists, had a version.
fn is_retired(gv: &GroupVersion, kind: &str) -> bool {
    RETIRED.iter().any(|(group, version, name)| {
        let below = kind.strip_prefix(name);
        gv.group == *group && gv.version == *version && matches!(below, Some("" | "List"))
    })
}

/// Why the type of an object of a custom resource cannot be read: it has no kind, or a malformed apiVersion.
pub(super) fn unreadable_type(object: &Object, body: &[u8]) -> Option<String> {
    if object.kind().is_empty() {
        return Some(no_kind(body));
    }
    let given = object.api_version();
    let is_malformed = !given.is_empty() && GroupVersion::parse(given).is_none();
    is_malformed.then(|| format!("unexpected GroupVersion string: {given}"))
}

/// The error of Go for an apiVersion or a kind that is no text.
pub(super) fn mistyped_type(document: &Value) -> Option<String> {
    ["apiVersion", "kind"].into_iter().find_map(|field| {
        let found = document.get(field)?;
        let found = Some(found).filter(|found| !found.is_string() && !found.is_null())?;
        let found = json_type(found);
        Some(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go struct field .{field} of type string"
        ))
    })
}

/// All problems of strict decoding as one text. The duplicate keys of YAML are one error of its parser.
pub(super) fn all_strict(problems: &[String]) -> String {
    let is_of_parser = |problem: &String| problem.starts_with("line ");
    let (of_parser, others): (Vec<_>, Vec<_>) = problems.iter().partition(|it| is_of_parser(it));
    let of_parser: String = of_parser.iter().map(|line| format!("\n  {line}")).collect();
    let of_parser = (!of_parser.is_empty()).then(|| format!("yaml: unmarshal errors:{of_parser}"));
    let all = of_parser.as_ref().into_iter().chain(others);
    all.map(String::as_str).collect::<Vec<_>>().join(", ")
}
