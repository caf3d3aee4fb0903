//! Reads a stored CustomResourceDefinition without its schemas, which are nearly all of it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::{
    self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::definitions::definitions;
use crate::kind::{Converter, ResourceDef};
use crate::schema::StoredSchema;
use crate::schema::structural::Footprint;

/// A CustomResourceDefinition as it is stored. Its schemas are parts of its bytes, and are not read.
///
/// ```
/// use apiloom_meta::kind::StoredDefinition;
/// use bytes::Bytes;
/// let json = r#"{"spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "lamps", "kind": "Lamp"},
///     "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}"#;
/// let stored = StoredDefinition::parse(&Bytes::from(json))?;
/// let (_, schema) = stored.schemas().next().unwrap();
/// assert_eq!(&schema.json()[..], br#"{"type": "object"}"#);
/// assert_eq!(stored.definitions(None).unwrap()[0].kind, "Lamp");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct StoredDefinition {
    document: Value,
    /// Those of the versions, in their order.
    schemas: Vec<Option<Arc<StoredSchema>>>,
}

impl StoredDefinition {
    /// Reads the JSON of a definition. Its schemas share these bytes.
    ///
    /// # Errors
    /// If it is not JSON, or its versions are no objects.
    pub fn parse(json: &Bytes) -> Result<Self, serde_json::Error> {
        let mut schemas = Vec::new();
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let whole = Part {
            place: Place::Definition,
            json,
            schemas: &mut schemas,
        };
        let document = whole.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(Self { document, schemas })
    }

    /// The definition without its schemas, of which only the descriptions are left.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Sets the accepted names, which were not stored yet when the definition was read.
    pub fn set_accepted_names(&mut self, names: Value) {
        if let Some(document) = self.document.as_object_mut() {
            let status = document.entry("status").or_insert(Value::Null);
            if !status.is_object() {
                *status = json!({});
            }
            status["acceptedNames"] = names;
        }
    }

    /// The schemas, with the names of their versions.
    pub fn schemas(&self) -> impl Iterator<Item = (&str, &Arc<StoredSchema>)> {
        let versions = self.document["spec"]["versions"].as_array();
        let names = versions.into_iter().flatten();
        let names = names.map(|version| version["name"].as_str().unwrap_or_default());
        names
            .zip(&self.schemas)
            .filter_map(|(name, schema)| Some((name, schema.as_ref()?)))
    }

    /// The versions of the kind, as [`custom_definitions`](super::custom_definitions), whose schemas are made when they are first
    /// needed.
    ///
    /// # Errors
    /// As [`custom_definitions`](super::custom_definitions), except for what is wrong with schemas.
    pub fn definitions(
        &self,
        converter: Option<Arc<dyn Converter>>,
    ) -> Result<Vec<ResourceDef>, Vec<String>> {
        definitions(&self.document, Some(&self.schemas), converter)
    }

    /// The memory that the schemas take at most when they are made.
    pub fn footprint(&self) -> usize {
        let mut footprint = Footprint::default();
        let schemas = self.schemas.iter().flatten();
        schemas.for_each(|schema| footprint.count_json(&schema.json()));
        footprint.bytes()
    }

    /// What is wrong with the schemas, one line each.
    pub fn schema_problems(&self) -> Vec<String> {
        let schemas = self.schemas.iter().enumerate();
        let checked =
            schemas.filter_map(|(at, schema)| Some((at, schema.as_ref()?.schema().err()?)));
        checked
            .flat_map(|(at, errors)| {
                let lines = errors.0.into_iter();
                lines.map(move |line| format!("spec.versions[{at}].schema.openAPIV3Schema: {line}"))
            })
            .collect()
    }
}

/// The parts of a definition around its schemas.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Definition,
    Spec,
    Versions,
    Version,
    /// The object that has the schema as its only field.
    Schema,
}

impl Place {
    /// The part at a field of this one that leads to schemas.
    fn at(self, field: &str) -> Option<Self> {
        match (self, field) {
            (Self::Definition, "spec") => Some(Self::Spec),
            (Self::Spec, "versions") => Some(Self::Versions),
            (Self::Version, "schema") => Some(Self::Schema),
            _ => None,
        }
    }
}

/// Reads a part of a definition in one walk, and takes the text of the schemas in it.
struct Part<'a> {
    place: Place,
    json: &'a Bytes,
    schemas: &'a mut Vec<Option<Arc<StoredSchema>>>,
}

impl Part<'_> {
    fn at(&mut self, place: Place) -> Part<'_> {
        Part {
            place,
            json: self.json,
            schemas: &mut *self.schemas,
        }
    }

    /// Takes the text of the schema of the last version; returns what the document has of it.
    fn take_schema(&mut self, text: &RawValue) -> Value {
        let text = text.get();
        let schema = StoredSchema::new(self.json.slice_ref(text.as_bytes()));
        if let Some(last) = self.schemas.last_mut() {
            *last = Some(Arc::new(schema));
        }
        json!({ "description": description(text) })
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.place == Place::Versions {
            "a list of versions"
        } else {
            "an object of a definition"
        })
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        if self.place == Place::Versions {
            return Err(E::invalid_type(Unexpected::Unit, &self));
        }
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        if self.place == Place::Versions {
            return Err(de::Error::invalid_type(Unexpected::Map, &self));
        }
        let mut fields = Map::new();
        while let Some(field) = access.next_key::<String>()? {
            let value = if let Some(place) = self.place.at(&field) {
                access.next_value_seed(self.at(place))?
            } else if self.place == Place::Schema && field == "openAPIV3Schema" {
                self.take_schema(access.next_value()?)
            } else {
                access.next_value()?
            };
            fields.insert(field, value);
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        if self.place != Place::Versions {
            return Err(de::Error::invalid_type(Unexpected::Seq, &self));
        }
        let mut versions = Vec::new();
        self.schemas.push(None);
        while let Some(version) = access.next_element_seed(self.at(Place::Version))? {
            versions.push(version);
            self.schemas.push(None);
        }
        // There is one for a version after the last.
        self.schemas.pop();
        Ok(Value::Array(versions))
    }
}

/// The description of a schema. What follows it in the JSON, which is well-formed, is not read. `codec::Finder` does not serve here:
/// it needs JSON without blanks.
fn description(schema: &str) -> Option<String> {
    struct Fields<'a>(&'a mut Option<String>);
    impl<'de> Visitor<'de> for Fields<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a schema")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
            while let Some(field) = access.next_key::<String>()? {
                if field == "description" {
                    *self.0 = access.next_value()?;
                    break;
                }
                access.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }
    let mut found = None;
    // An error says that fields are left, or that it is no object.
    let _ = serde_json::Deserializer::from_str(schema).deserialize_map(Fields(&mut found));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(spec: &str) -> Result<StoredDefinition, serde_json::Error> {
        StoredDefinition::parse(&Bytes::from(format!(
            r#"{{"kind": "K", "spec": {spec}, "status": null}}"#
        )))
    }

    #[test]
    fn the_text_of_schemas_is_kept_and_the_rest_is_read() {
        let stored = parse(
            r#"{"versions": [{"name": "v1"}, {"schema": {"openAPIV3Schema": {"type" : "object", "description": "A \"b\"."}, "x": 1}, "name": "v2"},
                {"name": "v3", "schema": {"openAPIV3Schema": {"properties": {"description": {"type": "string"}}}}}, null], "names": {"kind": "A"}}"#,
        );
        let stored = stored.unwrap();
        let schemas: Vec<(String, Bytes)> = stored
            .schemas()
            .map(|(name, schema)| (name.to_owned(), schema.json()))
            .collect();
        let texts = [
            r#"{"type" : "object", "description": "A \"b\"."}"#,
            r#"{"properties": {"description": {"type": "string"}}}"#,
        ];
        assert_eq!(
            schemas,
            [("v2", texts[0]), ("v3", texts[1])]
                .map(|(name, text)| (name.to_owned(), Bytes::from(text)))
        );
        let expected = json!({"kind": "K", "status": null, "spec": {"names": {"kind": "A"}, "versions": [{"name": "v1"},
            {"name": "v2", "schema": {"openAPIV3Schema": {"description": "A \"b\"."}, "x": 1}},
            {"name": "v3", "schema": {"openAPIV3Schema": {"description": null}}}, null]}});
        assert_eq!(*stored.document(), expected);
    }

    #[test]
    fn what_is_no_definition_is_an_error() {
        for spec in [
            "1",
            "[]",
            r#"{"versions": {}}"#,
            r#"{"versions": null}"#,
            r#"{"versions": [1]}"#,
            r#"{"versions": [{"schema": []}]}"#,
            "{} 1",
        ] {
            assert!(parse(spec).is_err(), "{spec}");
        }
    }

    #[test]
    fn accepted_names_are_those_of_the_kind() {
        let mut stored = parse(
            r#"{"group": "ex.io", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}"#,
        )
        .unwrap();
        stored.set_accepted_names(json!({"plural": "foos", "kind": "Fox"}));
        assert_eq!(stored.definitions(None).unwrap()[0].kind, "Fox");
    }
}
