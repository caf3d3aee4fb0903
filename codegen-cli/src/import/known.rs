//! Schemas that are those of types of apiloom's prelude, by their form or as components of Kubernetes' documents.

use std::sync::LazyLock;

use apiloom_meta::schema::Schema;
use apiloom_meta::{Condition, Duration, LabelSelector, OwnerReference};
use serde_json::{Map, Value, json};

use super::compare::{OWN_QUANTITY, QUANTITY, canonical};
use super::markers::TYPE;

/// Types that their forms do not tell, with those of the prelude for `check.rs`.
const NAMED: [&str; 5] = [
    "ObjectMeta",
    "MicroTime",
    "Duration",
    "LabelSelector",
    "OwnerReference",
];

/// The keywords of the schemas of those types.
const OF_NAMED: [&str; 8] = [
    TYPE,
    "type",
    "format",
    "pattern",
    "properties",
    "required",
    "additionalProperties",
    "x-kubernetes-map-type",
];

/// A type of the prelude.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) ty: &'static str,
    /// The keywords that the type says.
    pub(super) takes: &'static [&'static str],
}

const OF_INT_OR_STRING: [&str; 6] = [
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "anyOf",
    "type",
    "format",
    "pattern",
];
const OF_TEXT: [&str; 3] = ["type", "format", "x-kubernetes-preserve-unknown-fields"];
const OF_OBJECT: [&str; 4] = ["type", "properties", "required", "additionalProperties"];

/// The schema of a condition, as a CRD has it.
static CONDITION: LazyLock<Option<Value>> =
    LazyLock::new(|| Some(canonical(&crd_of(Schema::for_type::<Condition>().ok())?)));

fn crd_of(schema: Option<Schema>) -> Option<Value> {
    Some(schema?.to_crd().schema)
}

/// The schema of a component that Kubernetes' documents share, in any group, and the prelude has a type for.
pub(super) fn component(name: &str) -> Option<Value> {
    let (package, ty) = name.rsplit_once('.')?;
    let is_of = |end: &str| package.ends_with(end);
    let (schema, is_named) = match ty {
        "ObjectMeta" if is_of(".meta.v1") => (json!({ "type": "object" }), true),
        "Time" if is_of(".meta.v1") => (json!({ "type": "string", "format": "date-time" }), false),
        "MicroTime" if is_of(".meta.v1") => {
            (json!({ "type": "string", "format": "date-time" }), true)
        }
        "Condition" if is_of(".meta.v1") => (crd_of(Schema::for_type::<Condition>().ok())?, false),
        "Duration" if is_of(".meta.v1") => (crd_of(Schema::for_type::<Duration>().ok())?, true),
        "LabelSelector" if is_of(".meta.v1") => {
            (crd_of(Schema::for_type::<LabelSelector>().ok())?, true)
        }
        "OwnerReference" if is_of(".meta.v1") => {
            (crd_of(Schema::for_type::<OwnerReference>().ok())?, true)
        }
        "IntOrString" if is_of(".intstr") => (json!({ "x-kubernetes-int-or-string": true }), false),
        "Quantity" if is_of(".resource") => (
            json!({ "x-kubernetes-int-or-string": true, "pattern": QUANTITY }),
            false,
        ),
        "FieldsV1" if is_of(".meta.v1") => (any_object(), false),
        "RawExtension" if is_of(".runtime") => (any_object(), false),
        "JSON" if is_of(".apiextensions.v1") => (
            json!({ "x-kubernetes-preserve-unknown-fields": true }),
            false,
        ),
        _ => return None,
    };
    let mut schema = schema;
    if is_named {
        schema[TYPE] = ty.into();
    }
    Some(schema)
}

fn any_object() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// The type with this schema.
pub(super) fn of(schema: &Value) -> Option<Known> {
    let known = |ty, takes| Some(Known { ty, takes });
    let has = |name: &str| schema.get(name).is_some_and(|value| !value.is_null());
    if let Some(ty) = NAMED.into_iter().find(|ty| schema[TYPE] == **ty) {
        return known(ty, &OF_NAMED);
    }
    // A schema that also has a type takes only values of that type.
    if schema["x-kubernetes-int-or-string"] == true && !has("type") {
        return match schema["pattern"].as_str() {
            Some(pattern) if [QUANTITY, OWN_QUANTITY].contains(&pattern) => {
                known("Quantity", &OF_INT_OR_STRING)
            }
            _ => known("IntOrString", &OF_INT_OR_STRING[..5]),
        };
    }
    if schema["type"] == "string" {
        let is_plain = !["pattern", "minLength", "maxLength", "enum"]
            .into_iter()
            .any(has);
        return match schema["format"].as_str() {
            Some("date-time") if is_plain => known("Time", &OF_TEXT),
            Some("byte") if is_plain => known("Vec<u8>", &OF_TEXT),
            _ => None,
        };
    }
    if schema["type"] == "object" && schema["properties"].get("lastTransitionTime").is_some() {
        let mut plain = schema.clone();
        for name in ["default", "nullable", "x-kubernetes-map-type"] {
            plain.as_object_mut()?.remove(name);
        }
        if CONDITION.as_ref() == Some(&canonical(&plain)) {
            return known("Condition", &OF_OBJECT);
        }
    }
    None
}

/// Whether a type of the prelude is a struct with fields.
pub(super) fn is_struct(ty: &str) -> bool {
    matches!(
        ty,
        "ObjectMeta" | "Condition" | "LabelSelector" | "OwnerReference"
    )
}

/// The Rust name, in paths of attributes, of a field of a type of the prelude that can identify an item of a list.
pub(super) fn field(ty: &str, json: &str) -> Option<String> {
    let name = match (ty, json) {
        ("Condition", "type" | "status" | "reason") => json,
        ("OwnerReference", "uid" | "name" | "kind") => json,
        _ => return None,
    };
    Some(name.to_owned())
}

/// The schema of a type of the prelude, as schemars makes it; `None` for one that no import names.
pub(super) fn schema_of(ty: &str) -> Option<Value> {
    let text = match ty {
        "IntOrString" => {
            r#"{"format": "int-or-string", "x-kubernetes-int-or-string": true}"#.to_owned()
        }
        "Quantity" => {
            let pattern = Value::from(QUANTITY);
            format!(
                r#"{{"format": "quantity", "x-kubernetes-int-or-string": true, "pattern": {pattern}}}"#
            )
        }
        "ObjectMeta" => r#"{"type": "object"}"#.to_owned(),
        "MicroTime" => {
            r#"{"type": "string", "format": "date-time", "x-apiloom-canonical": "microseconds"}"#
                .to_owned()
        }
        "Duration" => {
            r#"{"type": "string", "format": "duration", "x-apiloom-canonical": "duration"}"#
                .to_owned()
        }
        "Time" => r#"{"type": "string", "format": "date-time", "x-apiloom-canonical": "seconds"}"#
            .to_owned(),
        _ => return None,
    };
    serde_json::from_str(&text).ok()
}

/// The definitions of types of the prelude that are structs.
pub(super) fn definitions() -> Map<String, Value> {
    let mut definitions = Map::new();
    for (name, mut schema) in [
        ("Condition", Schema::source_of::<Condition>()),
        ("LabelSelector", Schema::source_of::<LabelSelector>()),
        ("OwnerReference", Schema::source_of::<OwnerReference>()),
    ] {
        let below = schema
            .as_object_mut()
            .and_then(|schema| schema.remove("$defs"));
        if let Some(Value::Object(below)) = below {
            definitions.extend(below);
        }
        definitions.insert(name.to_owned(), schema);
    }
    definitions
}
