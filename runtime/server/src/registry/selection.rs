//! Which objects a list, a watch or a deletecollection is about: label and field selectors, checked against the kind.

use std::borrow::Cow;

use apiloom_meta::kind::Scope;
use apiloom_meta::path::JsonPath;
use apiloom_meta::selector::{FieldSelector, LabelQuery};
use apiloom_meta::{ApiError, Object};
use serde_json::Value;

use super::document::CachedObject;
use super::kind::{KindVersion, namespace_and_name};

/// Selectors that the kind can answer.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    labels: LabelQuery,
    fields: FieldSelector,
    everything: bool,
}

impl Selection {
    /// Checks that the kind declares every field that is selected by.
    pub(super) fn new(
        version: &KindVersion,
        labels: &LabelQuery,
        fields: &FieldSelector,
    ) -> Result<Self, ApiError> {
        for requirement in fields.requirements() {
            if !is_selectable(version, &requirement.field) {
                return Err(ApiError::bad_request(format!(
                    "field label not supported: {}",
                    requirement.field
                )));
            }
        }
        let everything = labels.is_everything() && fields.is_everything();
        Ok(Self {
            labels: labels.clone(),
            fields: fields.clone(),
            everything,
        })
    }

    /// Leaves nothing out.
    pub(super) fn everything() -> Self {
        Self {
            labels: LabelQuery::default(),
            fields: FieldSelector::default(),
            everything: true,
        }
    }

    /// Whether nothing is left out.
    pub(super) fn is_everything(&self) -> bool {
        self.everything
    }

    /// The one name that the selector allows, if it does.
    pub(super) fn name(&self) -> Option<&str> {
        self.fields.requires("metadata.name")
    }

    /// Whether nothing is selected by but what every version of an object has alike: its name, namespace and labels.
    pub(super) fn is_of_metadata(&self) -> bool {
        let fields = self.fields.requirements().iter();
        let mut names = fields.map(|requirement| requirement.field.as_str());
        names.all(|name| matches!(name, "metadata.name" | "metadata.namespace"))
    }

    /// Whether an object of the cache is selected, when it is in the version that the selector is about, or the
    /// selector is of metadata alone.
    pub(super) fn matches_cached(
        &self,
        version: &KindVersion,
        key: &str,
        object: &CachedObject,
    ) -> bool {
        self.everything
            || (self.labels.matches(|label| object.label(label))
                && self
                    .fields
                    .matches(|field| cached_field(version, key, object, field)))
    }

    /// The number and the value of a selectable field that must have one value, which an index then finds.
    pub(super) fn indexed<'a>(&'a self, version: &KindVersion) -> Option<(u16, &'a str)> {
        (0..)
            .zip(&version.def.selectable)
            .find_map(|(number, path)| Some((number, self.fields.requires(&path.as_field())?)))
    }

    /// Whether an object, in the version that the selector is about, is selected.
    pub(super) fn matches(&self, object: &Object) -> bool {
        self.everything
            || (self.labels.matches(|key| object.label(key))
                && self.fields.matches(|field| field_value(object, field)))
    }
}

fn is_selectable(version: &KindVersion, field: &str) -> bool {
    match field {
        "metadata.name" => true,
        "metadata.namespace" => version.def.scope == Scope::Namespaced,
        other => version
            .def
            .selectable
            .iter()
            .any(|path| path.as_field() == other),
    }
}

/// A value as selectors compare it: strings as they are, other scalars as they print, everything else as empty.
fn printed(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(scalar @ (Value::Bool(_) | Value::Number(_))) => Cow::Owned(scalar.to_string()),
        _ => Cow::Borrowed(""),
    }
}

/// A field as selectors compare it.
fn field_value<'a>(object: &'a Object, field: &str) -> Cow<'a, str> {
    let path = JsonPath::parse(field);
    let path = path.as_ref().and_then(|path| path.names().split_first());
    printed(path.and_then(|(first, rest)| {
        let root = object.fields().get(first)?;
        rest.iter().try_fold(root, |value, name| value.get(name))
    }))
}

/// The same of an object of the cache.
fn cached_field<'a>(
    version: &KindVersion,
    key: &'a str,
    object: &'a CachedObject,
    field: &str,
) -> Cow<'a, str> {
    let (namespace, name) = namespace_and_name(key);
    Cow::Borrowed(match field {
        "metadata.name" => name,
        "metadata.namespace" => namespace,
        other => {
            let mut declared = version.def.selectable.iter();
            let number = declared.position(|path| path.as_field() == other);
            number.map_or("", |number| object.field(number))
        }
    })
}

/// The same of a field as it is encoded.
pub(super) fn field_text(json: Option<&[u8]>) -> Box<str> {
    let value: Option<Value> = json.and_then(|json| serde_json::from_slice(json).ok());
    printed(value.as_ref()).into()
}
