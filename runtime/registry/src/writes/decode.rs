//! Decodes request bodies to objects of the version in the URL. Error messages are those of kube-apiserver.

use std::sync::Arc;

use apiloom_meta::codec::{self, DecodeError, Format, MAX_EXPANDED_BYTES};
use apiloom_meta::field::{MAX_ECHOED_BYTES, go_quote};
use apiloom_meta::go_value::json_type;
use apiloom_meta::kind::Scope;
use apiloom_meta::{ApiError, GroupVersion, Object, ResourceDef};
use serde_json::{Map, Value};

use super::managed;
use super::request::WriteRequest;
use super::settings::WriteSettings;
use crate::error::{no_kind, no_type, unrecognized};
use crate::objects::versioned_resource::VersionedResource;
use crate::options::{FieldValidation, RequestContext};

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

/// Decodes what requests send for the objects of a resource, and checks it against their URL.
#[derive(Debug)]
pub(crate) struct Decoder {
    resource: Arc<VersionedResource>,
    settings: Arc<WriteSettings>,
}

impl Decoder {
    pub(super) fn new(resource: Arc<VersionedResource>, settings: Arc<WriteSettings>) -> Self {
        Self { resource, settings }
    }

    /// Decodes a body, defaults and checks its apiVersion and kind, and handles unknown and duplicate fields as
    /// `validation` says.
    ///
    /// # Errors
    /// BadRequest with kube-apiserver's message; RequestEntityTooLarge if YAML aliases expand the body beyond
    /// [`MAX_EXPANDED_BYTES`].
    pub(crate) fn decode(
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
        let decoded = match codec::Decoder::new(format)
            .schema(self.resource.schema())
            .version(version)
            .decode(body)
        {
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
            let version = &self.resource.def().version;
            self.resource.cannot_handle(object.kind(), version, &text)
        })?;
        object.drop_empty_metadata();
        Ok(object)
    }

    /// As [`decode`](Self::decode), for a document of this kind in memory.
    ///
    /// # Errors
    /// BadRequest with kube-apiserver's message.
    pub(crate) fn decode_tree(
        &self,
        ctx: &RequestContext,
        document: Value,
        validation: FieldValidation,
    ) -> Result<Object, ApiError> {
        let refuse = |why: String| self.resource.unusable(&why);
        let (object, strict) = self.decode_result(document).map_err(refuse)?;
        self.report(ctx, &strict, validation).map_err(refuse)?;
        Ok(object)
    }

    /// The unknown and duplicate fields of an object that are told: of one that is not of the resource, which is refused when it is
    /// validated, kube-apiserver knows the fields of the metadata alone.
    fn strict_of(&self, object: &Object, mut strict: Vec<String>) -> Vec<String> {
        let def = self.resource.def();
        let is_of_group =
            || GroupVersion::parse(object.api_version()).is_some_and(|gv| gv.group == def.group);
        if def.dialect.validates_type && !(object.kind() == def.kind && is_of_group()) {
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
        let Ok(value) = codec::Decoder::new(format).value(body) else {
            // A number that no type can hold, in a document that cannot be read otherwise.
            return self.resource.unusable(text);
        };
        if let Some(text) = mistyped_type(&value) {
            return self.unrecognized(&text, body);
        }
        let checked = self.object_of(value, body).and_then(|mut object| {
            self.check_type(&mut object, body)?;
            Ok(object)
        });
        match checked {
            Ok(_) => self.resource.unusable(text),
            Err(error) => error,
        }
    }

    /// Checks apiVersion and kind of an object, and sets them if they are absent. Another kind may be left to
    /// validation.
    pub(crate) fn check_type(&self, object: &mut Object, body: &[u8]) -> Result<(), ApiError> {
        if self.resource.def().dialect.validates_type {
            return self.check_readable_type(object, body);
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

    /// Checks that an object has a kind, and the apiVersion of the request.
    fn check_readable_type(&self, object: &Object, body: &[u8]) -> Result<(), ApiError> {
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
            return self.resource.cannot_handle(kind, &gv.version, &text);
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
        self.resource.cannot_handle(kind, &gv.version, &text)
    }

    /// Checks the namespace of a body against that of the URL, and sets it if it is absent. It is removed from an object
    /// of a cluster-scoped kind.
    pub(crate) fn match_namespace(
        &self,
        object: &mut Object,
        namespace: Option<&str>,
    ) -> Result<(), ApiError> {
        if self.resource.kind.scope == Scope::Cluster {
            object.set_meta_str("namespace", "");
            return Ok(());
        }
        let namespace = namespace.unwrap_or_default();
        if object.namespace().is_empty() {
            object.set_meta_str("namespace", namespace);
            return Ok(());
        }
        if object.namespace() == namespace {
            return Ok(());
        }
        Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ))
    }

    /// Checks the name of a body against that of the URL.
    pub(crate) fn match_name(&self, object: &Object, name: &str) -> Result<(), ApiError> {
        let given = object.name();
        if given.is_empty() {
            let text = format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            );
            return Err(ApiError::bad_request(text));
        }
        if given == name {
            return Ok(());
        }
        Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )))
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
        let decoded = codec::Decoder::of(self.resource.schema())
            .version(&self.resource.def().version)
            .document(value);
        let decoded = decoded.map_err(|error| error.to_string())?;
        let mut object = Object::from_value(decoded.value)
            .ok_or_else(|| "the result is not an object".to_owned())?;
        if !self.resource.def().dialect.validates_type {
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
    pub(crate) fn match_url(
        &self,
        request: WriteRequest<'_>,
        mut object: Object,
    ) -> Result<Object, ApiError> {
        self.match_name(&object, request.name)?;
        self.match_namespace(&mut object, request.namespace)?;
        Ok(object)
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

    fn unrecognized(&self, why: &str, body: &[u8]) -> ApiError {
        unrecognized(&self.resource.def().kind, why, body)
    }
}

/// Why the type of an object of a custom resource cannot be read, which shows the object. A type of another kind is an error of its
/// validation.
fn unreadable_result(object: &Object) -> Option<String> {
    let is_shown = object.kind().is_empty();
    let json =
        is_shown.then(|| codec::Encoder::json_prefix(object.as_value(), MAX_ECHOED_BYTES + 1));
    unreadable_type(object, json.as_deref().unwrap_or_default().as_bytes())
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
