//! The keywords of a schema, and how they agree with each other.

use std::collections::HashSet;

use serde_json::Value;

use super::reading::{
    EMBEDDED, JUNCTORS, LIST_MAP_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE, all_parts, branches, has,
    is_true, members, part, text, texts, values_of_map,
};
use super::rules;
use crate::field::{FieldError, FieldPath};
use crate::interrupt::is_interrupted;

/// Keywords of JSON Schema that a definition may not have.
const UNSUPPORTED: [&str; 6] = [
    "$ref",
    "additionalItems",
    "definitions",
    "dependencies",
    "id",
    "patternProperties",
];

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Whether a schema, or one in it, has keywords without a structural form.
pub(super) fn has_unsupported(schema: &Value) -> bool {
    UNSUPPORTED
        .iter()
        .chain(&["$schema"])
        .any(|name| has(schema, name))
        || schema.get(PRESERVE) == Some(&Value::Bool(false))
        || schema.get("items").is_some_and(Value::is_array)
        || all_parts(schema).any(has_unsupported)
}

/// The violations in a schema of a whole object.
pub(super) fn check(schema: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut found = Vec::new();
    keywords(schema, path, &Around::default(), true, &mut found);
    found
}

/// What the schemas around one mean for it.
#[derive(Clone, Default)]
struct Around {
    /// Why a default is refused.
    no_default: Option<String>,
    is_metadata: bool,
}

fn keywords(
    schema: &Value,
    path: &FieldPath,
    around: &Around,
    is_root: bool,
    found: &mut Vec<FieldError>,
) {
    if is_interrupted() {
        return;
    }
    if !schema.is_object() {
        found.push(FieldError::invalid(path, schema, "must be a schema"));
        return;
    }
    single(schema, path, around, found);
    parts(schema, path, around, is_root, found);
    topology(schema, path, found);
    rules::texts(schema, path, found);
}

/// Checks keywords by themselves.
fn single(schema: &Value, path: &FieldPath, around: &Around, found: &mut Vec<FieldError>) {
    let json_type = text(schema, "type");
    if let Some(json_type) = json_type.filter(|json_type| !TYPES.contains(json_type)) {
        let at = path.child("type");
        found.push(FieldError::not_supported(&at, json_type, &TYPES));
    }
    if let Some(reason) = around
        .no_default
        .as_ref()
        .filter(|_| has(schema, "default"))
    {
        let detail = format!("must not be set {reason}");
        found.push(FieldError::forbidden(&path.child("default"), &detail));
    }
    for name in UNSUPPORTED.iter().filter(|name| has(schema, name)) {
        let detail = format!("{name} is not supported");
        found.push(FieldError::forbidden(&path.child(name), &detail));
    }
    if json_type == Some("null") {
        let detail = "type cannot be set to null, use nullable as an alternative";
        found.push(FieldError::forbidden(&path.child("type"), detail));
    }
    if schema
        .get("items")
        .and_then(Value::as_array)
        .is_some_and(|items| !items.is_empty())
    {
        let detail = "items must be a schema object and not an array";
        found.push(FieldError::forbidden(&path.child("items"), detail));
    }
    if around.is_metadata && is_true(schema, EMBEDDED) {
        let detail = "must not be used inside of resource meta";
        found.push(FieldError::forbidden(&path.child(EMBEDDED), detail));
    }
    if is_true(schema, "uniqueItems") {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.push(FieldError::forbidden(&path.child("uniqueItems"), detail));
    }
}

/// Checks the schemas in a schema.
fn parts(
    schema: &Value,
    path: &FieldPath,
    around: &Around,
    is_root: bool,
    found: &mut Vec<FieldError>,
) {
    if let Some(values) = part(schema, "additionalProperties") {
        let at = path.child("additionalProperties");
        let has_fields = members(schema, "properties").next().is_some();
        if has_fields && *values != Value::Bool(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            found.push(FieldError::forbidden(&at, detail));
        }
        if let Some(values) = values_of_map(schema) {
            let mut around = around.clone();
            if around.is_metadata {
                let reason = "inside additionalProperties applying to object metadata";
                around.no_default = Some(reason.to_owned());
            }
            keywords(values, &at, &around, false, found);
        }
    }
    for (name, field) in members(schema, "properties") {
        let mut around = around.clone();
        let is_common = matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
        if is_common && (is_root || is_true(schema, EMBEDDED)) {
            around.is_metadata = true;
            if is_root {
                around.no_default = Some(format!("in top-level {name}"));
            }
        }
        let at = path.child("properties").key(name);
        keywords(field, &at, &around, false, found);
    }
    if let Some(not) = part(schema, "not") {
        keywords(not, &path.child("not"), around, false, found);
    }
    for name in JUNCTORS {
        for (index, branch) in branches(schema, name) {
            let at = path.child(name).index(index);
            keywords(branch, &at, around, false, found);
        }
    }
    match part(schema, "items") {
        Some(Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                let at = path.child("items").index(index);
                keywords(item, &at, around, false, found);
            }
        }
        Some(items) => keywords(items, &path.child("items"), around, false, found),
        None => {}
    }
    if schema.get(PRESERVE) == Some(&Value::Bool(false)) {
        found.push(FieldError::invalid(
            &path.child(PRESERVE),
            false,
            "must be true or undefined",
        ));
    }
}

/// Checks the identity of list items, and the merging of maps.
fn topology(schema: &Value, path: &FieldPath, found: &mut Vec<FieldError>) {
    let at_type = path.child("type");
    let json_type = text(schema, "type");
    let wrong_type = |detail: &str| match json_type {
        None => FieldError::required(&at_type, detail),
        Some(json_type) => FieldError::invalid(&at_type, json_type, detail),
    };
    if let Some(map_type) = schema.get(MAP_TYPE).and_then(Value::as_str) {
        if json_type != Some("object") {
            found.push(wrong_type(
                "must be object if x-kubernetes-map-type is specified",
            ));
        }
        if !matches!(map_type, "atomic" | "granular") {
            let at = path.child(MAP_TYPE);
            let supported = ["atomic", "granular"];
            found.push(FieldError::not_supported(&at, map_type, &supported));
        }
    }
    let list_type = schema.get(LIST_TYPE).and_then(Value::as_str);
    let items = part(schema, "items").filter(|items| items.is_object());
    if list_type.is_some() && json_type != Some("array") {
        found.push(wrong_type(
            "must be array if x-kubernetes-list-type is specified",
        ));
    } else if let (Some("set"), Some(items)) = (list_type, items) {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let at = path.child("items");
        let of_items = items.get(LIST_TYPE).and_then(Value::as_str);
        match text(items, "type") {
            Some("array") if of_items.is_some_and(|list_type| list_type != "atomic") => {
                found.push(FieldError::invalid(&at.child(LIST_TYPE), of_items, detail));
            }
            Some("object") if text(items, MAP_TYPE) != Some("atomic") => {
                found.push(FieldError::invalid(&at.child(MAP_TYPE), of_items, detail));
            }
            _ => {}
        }
    }
    let at_list_type = path.child(LIST_TYPE);
    if let Some(list_type) = list_type.filter(|it| !matches!(*it, "atomic" | "set" | "map")) {
        let supported = ["atomic", "set", "map"];
        found.push(FieldError::not_supported(
            &at_list_type,
            list_type,
            &supported,
        ));
    }
    if has(schema, LIST_MAP_KEYS) && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        found.push(match list_type {
            None => FieldError::required(&at_list_type, detail),
            Some(list_type) => FieldError::invalid(&at_list_type, list_type, detail),
        });
    }
    if list_type == Some("map") {
        map_list(schema, path, found);
    }
    if let (Some(list_type @ ("set" | "map")), Some(items)) = (list_type, items) {
        if is_true(items, "nullable") {
            let at = path.child("items").child("nullable");
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            found.push(FieldError::forbidden(&at, &detail));
        }
        if list_type == "map" {
            key_fields(schema, items, path, found);
        }
    }
}

fn map_list(schema: &Value, path: &FieldPath, found: &mut Vec<FieldError>) {
    let keys = texts(schema, LIST_MAP_KEYS);
    let at_keys = path.child(LIST_MAP_KEYS);
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        found.push(FieldError::required(&at_keys, detail));
    }
    let at_items = path.child("items");
    let items = match part(schema, "items") {
        None => {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            found.push(FieldError::required(&at_items, detail));
            return;
        }
        Some(items @ Value::Array(_)) => {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            found.push(FieldError::invalid(&at_items, items, detail));
            return;
        }
        Some(items) => items,
    };
    let json_type = text(items, "type").unwrap_or_default();
    if json_type != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let at = at_items.child("type");
        found.push(FieldError::invalid(&at, json_type, detail));
        return;
    }
    let mut seen = HashSet::new();
    for key in &keys {
        match items.get("properties").and_then(|fields| fields.get(key)) {
            Some(field) if matches!(text(field, "type"), Some("array" | "object")) => {
                let at = at_items.child("properties").key(key).child("type");
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                found.push(FieldError::invalid(&at, json_type, detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                found.push(FieldError::invalid(&at_keys, &keys, detail));
            }
        }
        if !seen.insert(key) {
            let detail = "must not contain duplicate entries";
            found.push(FieldError::invalid(&at_keys, &keys, detail));
        }
    }
}

/// Checks that the keys of a list are never absent.
fn key_fields(schema: &Value, items: &Value, path: &FieldPath, found: &mut Vec<FieldError>) {
    let required = texts(items, "required");
    for key in texts(schema, LIST_MAP_KEYS) {
        let Some(field) = items.get("properties").and_then(|fields| fields.get(key)) else {
            continue;
        };
        let at = path.child("items").child("properties").key(key);
        if !required.contains(&key) && !has(field, "default") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            found.push(FieldError::required(&at.child("default"), detail));
        }
        if is_true(field, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            found.push(FieldError::forbidden(&at.child("nullable"), detail));
        }
    }
}
