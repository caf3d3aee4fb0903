//! The erased object: a JSON document of which only `apiVersion`, `kind` and `metadata` are known.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::types::ObjectMeta;

/// An object of any kind, as the registry handles it. The document is a JSON object by construction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Map<String, Value>);

impl Object {
    /// An object with these fields.
    pub fn new(fields: Map<String, Value>) -> Self {
        Self(fields)
    }
    /// Takes a document; `None` when it is not a JSON object.
    pub fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Object(fields) => Some(Self(fields)),
            _ => None,
        }
    }
    /// The document.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }
    /// The fields.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }
    /// The fields, to change.
    pub fn fields_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }
    /// `apiVersion`, empty when absent.
    pub fn api_version(&self) -> &str {
        self.0
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
    /// `kind`, empty when absent.
    pub fn kind(&self) -> &str {
        self.0
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
    /// Sets `apiVersion` and `kind`.
    pub fn set_type(&mut self, api_version: &str, kind: &str) {
        self.0
            .insert("apiVersion".to_owned(), Value::from(api_version));
        self.0.insert("kind".to_owned(), Value::from(kind));
    }
    /// The metadata document, `None` when absent or not an object.
    pub fn meta(&self) -> Option<&Map<String, Value>> {
        self.0.get("metadata").and_then(Value::as_object)
    }
    /// The metadata document, made when absent or not an object.
    pub fn meta_mut(&mut self) -> &mut Map<String, Value> {
        let entry = self
            .0
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if !entry.is_object() {
            *entry = Value::Object(Map::new());
        }
        entry
            .as_object_mut()
            .expect("an object was put there just above")
    }
    /// A string of the metadata, empty when absent.
    pub fn meta_str(&self, field: &str) -> &str {
        self.meta()
            .and_then(|m| m.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
    /// Sets a string of the metadata; the empty string removes it.
    pub fn set_meta_str(&mut self, field: &str, value: &str) {
        if value.is_empty() {
            self.meta_mut().remove(field);
        } else {
            self.meta_mut().insert(field.to_owned(), Value::from(value));
        }
    }
    /// Takes out of the metadata what says nothing: nulls, empty strings, lists and maps. Kubernetes writes none of them, so
    /// an object with `annotations: {}` is the same as one without.
    pub fn drop_empty_metadata(&mut self) {
        let says_something = |value: &Value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => true,
        };
        if let Some(Value::Object(metadata)) = self.fields_mut().get_mut("metadata") {
            metadata.retain(|_, value| says_something(value));
        }
    }
    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.meta_str("name")
    }
    /// `metadata.namespace`.
    pub fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }
    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.meta_str("uid")
    }
    /// `metadata.resourceVersion`, opaque.
    pub fn resource_version(&self) -> &str {
        self.meta_str("resourceVersion")
    }
    /// Whether `metadata.deletionTimestamp` is set.
    pub fn is_deleting(&self) -> bool {
        !self.meta_str("deletionTimestamp").is_empty()
    }
    /// `metadata.finalizers`, in order.
    pub fn finalizers(&self) -> Vec<&str> {
        let list = self
            .meta()
            .and_then(|m| m.get("finalizers"))
            .and_then(Value::as_array);
        list.map(|l| l.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    }
    /// The labels, if there are any.
    pub(crate) fn labels(&self) -> Option<&Map<String, Value>> {
        self.meta()?.get("labels")?.as_object()
    }
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels()?.get(key)?.as_str()
    }
    /// The metadata as its type.
    ///
    /// # Errors
    /// When a metadata field has another type than [`ObjectMeta`] says.
    pub fn metadata(&self) -> Result<ObjectMeta, serde_json::Error> {
        match self.0.get("metadata") {
            Some(value) => ObjectMeta::deserialize(value),
            None => Ok(ObjectMeta::default()),
        }
    }
    /// The whole object as a typed kind; fields that the type does not know are left out.
    ///
    /// # Errors
    /// When the document does not have the type's shape.
    pub fn to_typed<K: DeserializeOwned>(&self) -> Result<K, serde_json::Error> {
        // A clone: serde_json offers by-reference deserialization only from `&Value`, which a bare map is not.
        serde_json::from_value(Value::Object(self.0.clone()))
    }
}

use serde::Deserialize as _;

impl serde::Serialize for Object {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn only_a_json_object_is_an_object() {
        for value in [json!(null), json!(1), json!("a"), json!([])] {
            assert_eq!(Object::from_value(value), None);
        }
    }

    #[test]
    fn metadata_of_another_type_reads_as_absent() {
        let odd = [
            json!({}),
            json!({"metadata": 5}),
            json!({"apiVersion": 1, "kind": [], "metadata": {"name": 1, "labels": "x", "finalizers": {}, "deletionTimestamp": null}}),
        ];
        for object in odd.map(object) {
            assert_eq!(
                (object.api_version(), object.kind(), object.name()),
                ("", "", "")
            );
            assert_eq!(
                (object.finalizers(), object.label("a"), object.is_deleting()),
                (Vec::new(), None, false)
            );
        }
    }

    #[test]
    fn strings_of_the_metadata_are_set_and_removed() {
        let mut object = object(json!({"metadata": 5}));
        object.set_meta_str("name", "a");
        object.set_meta_str("uid", "u");
        object.set_meta_str("uid", "");
        object.set_type("ex.io/v1", "Foo");
        assert_eq!(
            object.into_value(),
            json!({"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "a"}})
        );
    }

    #[test]
    fn empty_metadata_is_no_metadata() {
        let mut object = object(json!({"metadata": {
            "name": "a", "generateName": "", "labels": {}, "annotations": {"k": ""}, "finalizers": [], "generation": 0,
        }}));
        object.drop_empty_metadata();
        assert_eq!(
            object.into_value(),
            json!({"metadata": {"name": "a", "annotations": {"k": ""}, "generation": 0}})
        );
    }

    #[test]
    fn the_metadata_is_read_as_its_type() {
        let good = object(
            json!({"metadata": {"name": "a", "labels": {"k": "v"}, "finalizers": ["x/y"], "bogus": 1}}),
        );
        assert_eq!(good.metadata().unwrap().name.as_deref(), Some("a"));
        assert_eq!(
            (good.label("k"), good.finalizers()),
            (Some("v"), vec!["x/y"])
        );
        assert_eq!(object(json!({})).metadata().unwrap(), ObjectMeta::default());
        assert!(object(json!({"metadata": {"name": 1}})).metadata().is_err());
    }
}
