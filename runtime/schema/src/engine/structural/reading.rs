//! Reads the keywords of a schema document. As after decoding in Go, empty values count as absent.

use serde_json::Value;

pub(super) const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
pub(super) const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
pub(super) const EMBEDDED: &str = "x-kubernetes-embedded-resource";
pub(super) const LIST_TYPE: &str = "x-kubernetes-list-type";
pub(super) const LIST_MAP_KEYS: &str = "x-kubernetes-list-map-keys";
pub(super) const MAP_TYPE: &str = "x-kubernetes-map-type";
pub(super) const VALIDATIONS: &str = "x-kubernetes-validations";

pub(super) const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// All keywords of `JSONSchemaProps`; others are dropped as unknown fields.
pub(super) const KEYWORDS: [&str; 44] = [
    "$ref",
    "$schema",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "definitions",
    "dependencies",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "id",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
    EMBEDDED,
    INT_OR_STRING,
    LIST_MAP_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    VALIDATIONS,
];

/// The keywords that are pointers in Go, so that an empty value is not an absent one.
const POINTERS: [&str; 19] = [
    "$ref",
    "additionalItems",
    "additionalProperties",
    "default",
    "dependencies",
    "example",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    LIST_TYPE,
    MAP_TYPE,
];

pub(super) fn is_true(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

/// Whether a keyword has a value that is not that of an absent one.
pub(super) fn has(schema: &Value, name: &str) -> bool {
    match schema.get(name) {
        None | Some(Value::Null) => false,
        Some(_) if POINTERS.contains(&name) || name == PRESERVE => true,
        Some(Value::Bool(flag)) => *flag,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(Value::Number(_)) => true,
    }
}

/// A text that is not empty.
pub(super) fn text<'a>(schema: &'a Value, name: &str) -> Option<&'a str> {
    let text = schema.get(name)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// A keyword whose value is not null.
pub(super) fn part<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get(name).filter(|value| !value.is_null())
}

/// The schema of the values of a map; `None` also for a boolean.
pub(super) fn values_of_map(schema: &Value) -> Option<&Value> {
    part(schema, "additionalProperties").filter(|values| !values.is_boolean())
}

/// The members of an object; none for other values.
pub(super) fn members<'a>(
    schema: &'a Value,
    name: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let members = schema.get(name).and_then(Value::as_object);
    members.into_iter().flatten()
}

/// The schemas of a junctor.
pub(super) fn branches<'a>(
    schema: &'a Value,
    name: &str,
) -> impl Iterator<Item = (usize, &'a Value)> {
    let branches = schema.get(name).and_then(Value::as_array);
    branches.into_iter().flatten().enumerate()
}

/// The texts of a list.
pub(super) fn texts<'a>(schema: &'a Value, name: &str) -> Vec<&'a str> {
    let list = schema.get(name).and_then(Value::as_array);
    let list = list.into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

/// All schemas in a schema.
pub(super) fn all_parts(schema: &Value) -> impl Iterator<Item = &Value> {
    let single = [
        part(schema, "items"),
        values_of_map(schema),
        part(schema, "not"),
    ];
    let junctors = JUNCTORS.into_iter().flat_map(|name| branches(schema, name));
    let fields = members(schema, "properties").map(|(_, field)| field);
    fields
        .chain(single.into_iter().flatten())
        .chain(junctors.map(|(_, branch)| branch))
}

/// Whether a junctor has the two branches that stand for an integer or a string.
pub(super) fn is_either(schema: &Value) -> bool {
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let Some([first, second]) = branches.map(Vec::as_slice) else {
        return false;
    };
    let is_only = |branch: &Value, json_type: &str| {
        text(branch, "type") == Some(json_type)
            && KEYWORDS
                .iter()
                .all(|name| *name == "type" || !has(branch, name))
    };
    is_only(first, "integer") && is_only(second, "string")
}
