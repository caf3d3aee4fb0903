//! The type-erased object: a JSON document with `apiVersion`, `kind` and `metadata`.

mod tree;
mod typed;

use std::fmt;
use std::sync::Arc;

use apiloom_schema::number;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::kind::Resource;
use crate::schema::{DefaultsTooLarge, Schema};
use crate::selector::Labels;
use crate::types::ObjectMeta;
use typed::TypedCache;

/// An object of any kind, for the registry. Its document is always a JSON object.
///
/// It caches its typed value (see [`Object::typed`]) until a field changes; a clone does not have it.
#[derive(Clone)]
pub struct Object {
    /// Always a [`Value::Object`].
    document: Value,
    typed: TypedCache,
}

/// Only which object it is: the rest may be secret.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("api_version", &self.api_version())
            .field("kind", &self.kind())
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl Default for Object {
    fn default() -> Self {
        Self::new(Map::new())
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.document == other.document
    }
}

impl Object {
    /// An object with these fields.
    pub fn new(fields: Map<String, Value>) -> Self {
        Self {
            document: Value::Object(fields),
            typed: TypedCache::default(),
        }
    }
    /// An object from a document; `None` if it is not a JSON object.
    pub fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Object(fields) => Some(Self::new(fields)),
            _ => None,
        }
    }
    /// The document of the object. `metadata.managedFields` and `fieldsV1` may be strings with their JSON,
    /// see [`Object::into_tree`].
    pub fn into_value(self) -> Value {
        self.document
    }
    /// The document, a JSON object. `metadata.managedFields` and `fieldsV1` may be strings with their JSON,
    /// see [`Object::into_tree`].
    pub fn as_value(&self) -> &Value {
        &self.document
    }
    /// The fields.
    pub fn fields(&self) -> &Map<String, Value> {
        self.document
            .as_object()
            .expect("an object by construction")
    }
    /// The fields, mutable.
    pub fn fields_mut(&mut self) -> &mut Map<String, Value> {
        self.clear_typed();
        self.fields_beside_typed()
    }
    /// Drops the cached typed value, because the document has changed or is about to change.
    pub(crate) fn clear_typed(&mut self) {
        self.typed.clear();
    }
    /// The fields, mutable without dropping the cached typed value; for changes that it does not contain, or that are
    /// recorded in it.
    fn fields_beside_typed(&mut self) -> &mut Map<String, Value> {
        self.document
            .as_object_mut()
            .expect("an object by construction")
    }
    /// Sets or removes a field. A field that has the value already is not touched, so that the cached typed value
    /// stays.
    pub fn set_field(&mut self, name: &str, value: Option<Value>) {
        if self.fields().get(name) == value.as_ref() {
            return;
        }
        let fields = self.fields_mut();
        match value {
            Some(value) => fields.insert(name.to_owned(), value),
            None => fields.remove(name),
        };
    }
    /// Applies the defaults of a schema for such documents.
    pub fn default_by(&mut self, schema: &Schema) {
        if schema.default(&mut self.document) {
            self.typed.clear();
        }
    }
    /// As [`Object::default_by`], with a limit for the defaults.
    ///
    /// # Errors
    /// If the defaults have more than `max_bytes` bytes of JSON; some of them may be applied then.
    pub fn default_within(
        &mut self,
        schema: &Schema,
        max_bytes: usize,
    ) -> Result<(), DefaultsTooLarge> {
        if schema.default_within(&mut self.document, max_bytes)? {
            self.typed.clear();
        }
        Ok(())
    }
    /// Replaces the numbers of the document by those that it has after it was stored: a float without fraction by an integer.
    pub fn settle_numbers(&mut self) {
        self.typed.clear();
        number::settle(&mut self.document);
    }
    /// Removes the fields that are unknown to a schema for such documents.
    pub fn prune_by(&mut self, schema: &Schema) {
        self.typed.clear();
        schema.prune(&mut self.document);
    }
    /// `apiVersion`, empty when absent.
    pub fn api_version(&self) -> &str {
        self.text("apiVersion")
    }
    /// `kind`, empty when absent.
    pub fn kind(&self) -> &str {
        self.text("kind")
    }
    /// A string field; empty if absent.
    fn text(&self, field: &str) -> &str {
        self.fields()
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
    /// Sets `apiVersion` and `kind`.
    pub fn set_type(&mut self, api_version: &str, kind: &str) {
        // The typed value has neither.
        let fields = self.fields_beside_typed();
        fields.insert("apiVersion".to_owned(), Value::from(api_version));
        fields.insert("kind".to_owned(), Value::from(kind));
    }
    /// The metadata; `None` if it is absent or not an object.
    pub fn meta(&self) -> Option<&Map<String, Value>> {
        self.fields().get("metadata").and_then(Value::as_object)
    }
    /// The metadata, mutable; added if it is absent or not an object.
    pub fn meta_mut(&mut self) -> &mut Map<String, Value> {
        self.typed.set_metadata_outdated();
        let entry = self
            .fields_beside_typed()
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if !entry.is_object() {
            *entry = Value::Object(Map::new());
        }
        entry
            .as_object_mut()
            .expect("an object was put there just above")
    }
    /// A string field of the metadata; empty if absent.
    pub fn meta_str(&self, field: &str) -> &str {
        self.meta()
            .and_then(|m| m.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
    /// Sets a string field of the metadata; an empty string removes it.
    pub fn set_meta_str(&mut self, field: &str, value: &str) {
        if value.is_empty() {
            self.meta_mut().remove(field);
        } else {
            self.meta_mut().insert(field.to_owned(), Value::from(value));
        }
    }
    /// Removes empty values from the metadata: nulls, empty strings, lists and maps. Kubernetes does not write them,
    /// so an object with `annotations: {}` is equal to one without annotations.
    pub fn drop_empty_metadata(&mut self) {
        self.typed.set_metadata_outdated();
        if let Some(Value::Object(metadata)) = self.fields_beside_typed().get_mut("metadata") {
            drop_empty(metadata);
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
    /// The labels, if any.
    pub(crate) fn labels(&self) -> Option<&Map<String, Value>> {
        self.meta()?.get("labels")?.as_object()
    }
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels()?.get(key)?.as_str()
    }
    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.meta()?.get("annotations")?.get(key)?.as_str()
    }
    /// The metadata, decoded.
    ///
    /// # Errors
    /// If a field of the metadata does not have the type in [`ObjectMeta`].
    pub fn metadata(&self) -> Result<ObjectMeta, serde_json::Error> {
        typed::metadata(&self.document)
    }
    /// The object as a typed value. It is decoded by the first call, and again after a field outside of the metadata
    /// has changed, so that admission plugins and the strategy of the kind share one value. Fields that the type does
    /// not have are dropped.
    ///
    /// # Errors
    /// If the document cannot be decoded as the type.
    pub fn typed<K: Resource>(&self) -> Result<Arc<K>, serde_json::Error> {
        self.typed.get(&self.document)
    }
    /// Caches a typed value that is equal to the document.
    pub(crate) fn set_typed<K: Resource>(&mut self, value: Arc<K>) {
        self.typed.set(value);
    }
    /// The object as a value of a type; fields that the type does not have are dropped.
    ///
    /// # Errors
    /// If the document cannot be decoded as the type.
    pub fn to_typed<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&self.document)
    }
}

impl Labels for Object {
    fn value(&self, key: &str) -> Option<&str> {
        self.label(key)
    }
    fn count(&self) -> usize {
        self.labels().map_or(0, serde_json::Map::len)
    }
    fn all(&self, mut holds: impl FnMut(&str, &str) -> bool) -> bool {
        let labels = self.labels().into_iter().flatten();
        // A value that is not a string is not a label.
        let mut labels = labels.filter_map(|(key, value)| Some((key, value.as_str()?)));
        labels.all(|(key, value)| holds(key, value))
    }
}

/// Removes the values that Kubernetes does not write of a metadata.
pub(crate) fn drop_empty(metadata: &mut Map<String, Value>) {
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    });
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
