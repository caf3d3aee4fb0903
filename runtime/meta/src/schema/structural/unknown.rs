//! Drops from the schema in a CustomResourceDefinition what kube-apiserver's types do not have.

use serde_json::{Map, Value};

use super::super::path::Path;
use super::reading::{KEYWORDS, VALIDATIONS};

/// The fields of a rule.
pub(super) const RULE_FIELDS: [&str; 6] = [
    "rule",
    "message",
    "messageExpression",
    "reason",
    "fieldPath",
    "optionalOldSelf",
];

/// The fields of `externalDocs`.
const DOCS_FIELDS: [&str; 2] = ["description", "url"];

/// Drops unknown keywords, and reports the path of each. Below `items`, `additionalItems`, `additionalProperties` and
/// `dependencies` they are not reported: in kube-apiserver the types of these decode themselves, without strictness. Items of any other
/// type are none.
pub(crate) fn drop_unknown(schema: &mut Value, path: &Path<'_>, report: &mut dyn FnMut(&Path<'_>)) {
    let Value::Object(keywords) = schema else {
        return;
    };
    keywords.retain(|name, value| {
        let at = Path::Field(path, name);
        if !KEYWORDS.contains(&name.as_str()) {
            report(&at);
            return false;
        }
        match name.as_str() {
            "properties" | "patternProperties" | "definitions" => {
                for (key, schema) in value.as_object_mut().into_iter().flatten() {
                    drop_unknown(schema, &Path::Key(&at, key), report);
                }
            }
            "allOf" | "anyOf" | "oneOf" => {
                for (index, schema) in value.as_array_mut().into_iter().flatten().enumerate() {
                    drop_unknown(schema, &Path::Index(&at, index), report);
                }
            }
            "not" => drop_unknown(value, &at, report),
            "items" if !value.is_object() && !value.is_array() => *value = Value::Null,
            "items" | "additionalItems" | "additionalProperties" => silently(value),
            "dependencies" => {
                let schemas = value.as_object_mut().into_iter().flatten();
                schemas.for_each(|(_, schema)| silently(schema));
            }
            "externalDocs" => {
                if let Value::Object(fields) = value {
                    keep_only(fields, &DOCS_FIELDS, &at, report);
                }
            }
            VALIDATIONS => {
                for (index, rule) in value.as_array_mut().into_iter().flatten().enumerate() {
                    if let Value::Object(fields) = rule {
                        keep_only(fields, &RULE_FIELDS, &Path::Index(&at, index), report);
                    }
                }
            }
            _ => {}
        }
        true
    });
}

/// Drops unknown keywords of a schema, or of a list of them.
fn silently(value: &mut Value) {
    match value {
        Value::Array(schemas) => schemas.iter_mut().for_each(silently),
        schema => drop_unknown(schema, &Path::Root, &mut |_| {}),
    }
}

fn keep_only(
    fields: &mut Map<String, Value>,
    known: &[&str],
    path: &Path<'_>,
    report: &mut dyn FnMut(&Path<'_>),
) {
    fields.retain(|name, _| {
        let is_known = known.contains(&name.as_str());
        if !is_known {
            report(&Path::Field(path, name));
        }
        is_known
    });
}
