//! Schemas that are those of types of apiloom's prelude.

use std::sync::LazyLock;

use apiloom_meta::{Condition, schema::Schema};
use serde_json::{Map, Value};

use super::compare::{QUANTITY, canonical};

/// A type of the prelude.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) ty: &'static str,
    /// The keywords that the type says.
    pub(super) takes: &'static [&'static str],
}

const OF_INT_OR_STRING: [&str; 5] = [
    "x-kubernetes-int-or-string",
    "anyOf",
    "type",
    "format",
    "pattern",
];
const OF_TEXT: [&str; 2] = ["type", "format"];
const OF_OBJECT: [&str; 4] = ["type", "properties", "required", "additionalProperties"];

/// The schema of a condition, as a CRD has it.
static CONDITION: LazyLock<Option<Value>> = LazyLock::new(|| {
    let schema = Schema::for_type::<Condition>().ok()?;
    Some(canonical(&schema.to_crd().schema))
});

/// The type with this schema.
pub(super) fn of(schema: &Value) -> Option<Known> {
    let known = |ty, takes| Some(Known { ty, takes });
    let has = |name: &str| schema.get(name).is_some_and(|value| !value.is_null());
    if schema["x-kubernetes-int-or-string"] == true {
        return match schema["pattern"].as_str() {
            Some(pattern) if pattern == QUANTITY => known("Quantity", &OF_INT_OR_STRING),
            _ => known("IntOrString", &OF_INT_OR_STRING[..4]),
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
        "Time" => r#"{"type": "string", "format": "date-time", "x-apiloom-canonical": "seconds"}"#
            .to_owned(),
        _ => return None,
    };
    serde_json::from_str(&text).ok()
}

/// The definitions of types of the prelude that are structs.
pub(super) fn definitions() -> Map<String, Value> {
    let mut condition = Schema::source_of::<Condition>();
    let below = condition
        .as_object_mut()
        .and_then(|schema| schema.remove("$defs"));
    let mut definitions = match below {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    definitions.insert("Condition".to_owned(), condition);
    definitions
}
