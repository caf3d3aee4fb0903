//! The fields that a builder was given, and what all builders can do.

use std::collections::BTreeMap;
use std::fmt;

use apiloom_meta::Resource;
use apiloom_meta::gvk::GroupVersion;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::{Map, Value};

/// The fields of a builder, as JSON, and the first value that has no JSON.
#[derive(Clone, Default, PartialEq)]
pub struct Fields {
    fields: Map<String, Value>,
    /// The error of the first value without JSON, with its path. Serializing the fields fails with it.
    problem: Option<String>,
}

impl Fields {
    /// The JSON of the fields.
    pub fn as_json(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Keeps the first problem. That of a builder inside this one begins with its own field: `spec: size: ..`.
    fn fail(&mut self, name: &str, why: &str) {
        self.problem.get_or_insert_with(|| format!("{name}: {why}"));
    }

    fn encode<T: Serialize>(&mut self, name: &str, value: &T) -> Value {
        serde_json::to_value(value).unwrap_or_else(|error| {
            self.fail(name, &error.to_string());
            Value::Null
        })
    }

    /// Sets a field, which cannot be null.
    pub fn set<T: Serialize>(&mut self, name: &str, value: &T) {
        let json = self.encode(name, value);
        if json.is_null() {
            self.fail(
                name,
                "the field takes no null, and JSON has no infinite numbers",
            );
        }
        self.fields.insert(name.to_owned(), json);
    }

    /// Sets a field that can be null.
    pub fn set_nullable<T: Serialize>(&mut self, name: &str, value: &T) {
        let json = self.encode(name, value);
        self.fields.insert(name.to_owned(), json);
    }

    /// Sets the fields of a value that is inlined into this one.
    pub fn set_flat<T: Serialize>(&mut self, name: &str, value: &T) {
        match self.encode(name, value) {
            Value::Object(fields) => self.fields.extend(fields),
            _ => self.fail(name, "a flattened value must be a JSON object"),
        }
    }

    /// Removes a field, so that it is not sent.
    pub fn unset(&mut self, name: &str) {
        self.fields.remove(name);
    }

    /// Removes all fields: those of a union exclude each other.
    pub fn clear(&mut self) {
        self.fields.clear();
    }

    /// Removes none: those of a struct do not.
    pub fn keep(&mut self) {}

    /// Changes a field that is a builder, or a list or map of them; an absent one is empty. `others` is
    /// [`Fields::clear`] or [`Fields::keep`].
    pub fn edit<T: FromJson + Serialize>(
        &mut self,
        name: &str,
        others: fn(&mut Self),
        edit: impl FnOnce(T) -> T,
    ) {
        let present = self.fields.remove(name).unwrap_or_default();
        others(self);
        let changed = edit(T::from_json(present));
        self.set(name, &changed);
    }
}

impl From<Map<String, Value>> for Fields {
    fn from(fields: Map<String, Value>) -> Self {
        let problem = None;
        Self { fields, problem }
    }
}

/// Serializes the fields that are set.
impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.problem {
            Some(problem) => Err(S::Error::custom(problem)),
            None => self.fields.serialize(serializer),
        }
    }
}

/// Prints names alone, since the values may be secret.
impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.fields.keys()).finish()
    }
}

/// A builder, or a list or map of them, as [`Fields::edit`] reads it. Values of other forms become empty.
pub trait FromJson {
    /// Reads the value.
    fn from_json(json: Value) -> Self;
}

impl<T: Part> FromJson for T {
    fn from_json(json: Value) -> Self {
        match json {
            Value::Object(fields) => T::from_fields(fields.into()),
            _ => T::default(),
        }
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(json: Value) -> Self {
        match json {
            Value::Array(items) => items.into_iter().map(T::from_json).collect(),
            _ => Self::new(),
        }
    }
}

impl<T: FromJson> FromJson for BTreeMap<String, T> {
    fn from_json(json: Value) -> Self {
        match json {
            Value::Object(fields) => {
                let fields = fields.into_iter();
                fields
                    .map(|(key, value)| (key, T::from_json(value)))
                    .collect()
            }
            _ => Self::new(),
        }
    }
}

/// A builder of an object or of a struct inside it. [`configurations!`](crate::configurations) implements it.
pub trait Part: Default + Serialize {
    /// A builder that has these fields.
    fn from_fields(fields: Fields) -> Self;

    /// The fields.
    fn fields(&self) -> &Fields;

    /// The fields, to change them.
    fn fields_mut(&mut self) -> &mut Fields;

    /// The JSON of a field that is set, by its JSON name.
    fn get(&self, name: &str) -> Option<&Value> {
        self.fields().as_json().get(name)
    }

    /// Sets a field by its JSON name: one that the type does not have, or a part of a value that has no builder, as
    /// `serde_json::json!` writes it.
    #[must_use]
    fn set<T: Serialize>(mut self, name: &str, value: &T) -> Self {
        self.fields_mut().set_nullable(name, value);
        self
    }

    /// Removes a field, by its JSON name: it is not sent.
    #[must_use]
    fn unset(mut self, name: &str) -> Self {
        self.fields_mut().unset(name);
        self
    }
}

/// The builder of an object that sets no field yet.
pub fn new<K: Resource, P: Part>(name: String) -> P {
    let mut new = P::default();
    let fields = new.fields_mut();
    let version = GroupVersion::new(K::GROUP, K::VERSION).to_string();
    fields.set("apiVersion", &version);
    fields.set("kind", &K::KIND);
    set_metadata(fields, "name", &name);
    new
}

/// Sets a map of texts in the metadata.
pub fn with_texts<P: Part, K: Into<String>, V: Into<String>>(
    mut part: P,
    name: &str,
    texts: impl IntoIterator<Item = (K, V)>,
) -> P {
    let texts = texts.into_iter();
    let texts: BTreeMap<String, String> = texts.map(|(k, v)| (k.into(), v.into())).collect();
    set_metadata(part.fields_mut(), name, &texts);
    part
}

/// Sets a field of the metadata.
pub fn set_metadata<T: Serialize>(fields: &mut Fields, name: &str, value: &T) {
    let json = fields.encode(name, value);
    let metadata = fields
        .fields
        .entry("metadata")
        .or_insert_with(|| Map::new().into());
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert(name.to_owned(), json);
    }
}
