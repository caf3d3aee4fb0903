//! Reads a stored CustomResourceDefinition without its schemas, which are nearly all of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::definitions::definitions;
use crate::kind::{Converter, ResourceDef};
use crate::schema::StoredSchema;

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

type Members<'a> = BTreeMap<String, &'a RawValue>;

/// What is read of a schema.
#[derive(Deserialize)]
struct Described {
    #[serde(default)]
    description: Option<String>,
}

impl StoredDefinition {
    /// Reads the JSON of a definition. Its schemas share these bytes.
    ///
    /// # Errors
    /// If it is not JSON, or its versions are no objects.
    pub fn parse(json: &Bytes) -> Result<Self, serde_json::Error> {
        let mut schemas = Vec::new();
        let mut version = |raw: &RawValue| {
            let mut schema = None;
            let version = members(raw, "schema", |raw| {
                members(raw, "openAPIV3Schema", |raw| {
                    schema = Some(Arc::new(StoredSchema::new(
                        json.slice_ref(raw.get().as_bytes()),
                    )));
                    let of: Option<Described> = serde_json::from_str(raw.get())?;
                    Ok(json!({ "description": of.and_then(|of| of.description) }))
                })
            })?;
            schemas.push(schema);
            Ok(version)
        };
        let whole: &RawValue = serde_json::from_slice(json)?;
        let document = members(whole, "spec", |raw| {
            members(raw, "versions", |raw| {
                let versions: Vec<&RawValue> = serde_json::from_str(raw.get())?;
                let versions = versions.into_iter().map(&mut version);
                versions
                    .collect::<Result<Vec<Value>, _>>()
                    .map(Value::Array)
            })
        })?;
        Ok(Self { document, schemas })
    }

    /// The definition without its schemas, of which only the descriptions are left.
    pub fn document(&self) -> &Value {
        &self.document
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

/// An object one of whose members is read by a function.
fn members(
    raw: &RawValue,
    name: &str,
    mut read: impl FnMut(&RawValue) -> Result<Value, serde_json::Error>,
) -> Result<Value, serde_json::Error> {
    let Some(all) = serde_json::from_str::<Option<Members<'_>>>(raw.get())? else {
        return Ok(Value::Null);
    };
    let mut object = Map::new();
    for (key, value) in all {
        let value = if key == name {
            read(value)?
        } else {
            serde_json::from_str(value.get())?
        };
        object.insert(key, value);
    }
    Ok(Value::Object(object))
}
