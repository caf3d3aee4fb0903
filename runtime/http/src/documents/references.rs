//! References to schemas in documents of OpenAPI.

use serde_json::Value;

/// What begins every reference to a schema in v2.
pub(crate) const DEFINITIONS: &str = "#/definitions/";

/// What begins every reference to a schema in v3.
pub(crate) const SCHEMAS: &str = "#/components/schemas/";

/// Collects the names of the schemas that a value refers to, by references that begin with a text.
pub(crate) fn references<'a>(value: &'a Value, begin: &str, names: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str().and_then(|text| text.strip_prefix(begin)) {
                    Some(name) if key == "$ref" => names.push(name),
                    _ => references(value, begin, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, begin, names)),
        _ => {}
    }
}
