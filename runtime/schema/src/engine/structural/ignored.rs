//! What kube-apiserver accepts in a schema without any effect, which generated definitions should not have.

use serde_json::{Map, Value};

use super::super::known_formats::is_known_format;
use super::super::node::QUANTITY;
use super::form;
use super::reading::{
    INT_OR_STRING, JUNCTORS, KEYWORDS, PRESERVE, VALIDATIONS, branches, is_true, members, part,
    text, values_of_map,
};
use super::unknown::RULE_FIELDS;
use crate::field::{FieldError, FieldPath};

/// The keywords and formats without effect in a schema, and the types that other keywords replace.
pub(super) fn check(schema: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut found = Vec::new();
    walk(schema, path, false, &mut found);
    found
}

/// Checks a schema. That of a branch judges values and describes none.
fn walk(schema: &Value, path: &FieldPath, is_branch: bool, found: &mut Vec<FieldError>) {
    let Value::Object(keywords) = schema else {
        return;
    };
    for name in keywords.keys() {
        let is_known = KEYWORDS.contains(&name.as_str()) || name.starts_with("x-kubernetes-");
        if !is_known && name != "example" {
            let at = path.child(name);
            found.push(FieldError::forbidden(&at, "is not supported"));
        }
    }
    json_type(schema, path, found);
    if let Some(format) = text(schema, "format")
        && !is_known_format(text(schema, "type"), format)
        // It tells clients what the text is.
        && format != QUANTITY
    {
        let detail = "is a format that kube-apiserver ignores";
        found.push(FieldError::invalid(&path.child("format"), format, detail));
    }
    if !is_branch {
        rules(schema, path, found);
    }
    for (name, field) in members(schema, "properties") {
        let at = path.child("properties").key(name);
        of_part(field, &at, is_branch, found);
    }
    if let Some(values) = values_of_map(schema) {
        let at = path.child("additionalProperties");
        of_part(values, &at, is_branch, found);
    }
    if let Some(items) = part(schema, "items") {
        of_part(items, &path.child("items"), is_branch, found);
    }
    if let Some(not) = part(schema, "not") {
        walk(not, &path.child("not"), true, found);
    }
    for name in JUNCTORS {
        for (index, branch) in branches(schema, name) {
            walk(branch, &path.child(name).index(index), true, found);
        }
    }
}

/// Checks the schema of a part of a value. kube-apiserver compares alternatives with the description at the root only.
fn of_part(schema: &Value, path: &FieldPath, is_branch: bool, found: &mut Vec<FieldError>) {
    if !is_branch {
        found.extend(form::undescribed(schema, path));
    }
    walk(schema, path, is_branch, found);
}

fn json_type(schema: &Value, path: &FieldPath, found: &mut Vec<FieldError>) {
    let at = path.child("type");
    match schema.get("type") {
        Some(Value::String(json_type)) => {
            if is_true(schema, INT_OR_STRING) {
                let detail = "must be empty if x-kubernetes-int-or-string is true";
                found.push(FieldError::invalid(&at, json_type, detail));
            } else if is_true(schema, PRESERVE) && !matches!(&**json_type, "object" | "array") {
                let detail =
                    "must be object or array if x-kubernetes-preserve-unknown-fields is true";
                found.push(FieldError::invalid(&at, json_type, detail));
            }
        }
        None | Some(Value::Null) => {}
        Some(other) => {
            found.push(FieldError::invalid(
                &at,
                other,
                "must be the name of one type",
            ));
        }
    }
}

fn rules(schema: &Value, path: &FieldPath, found: &mut Vec<FieldError>) {
    let at = path.child(VALIDATIONS);
    let Some(Value::Array(rules)) = schema.get(VALIDATIONS) else {
        return;
    };
    if text(schema, "type").is_none() && !is_true(schema, INT_OR_STRING) {
        let detail = "must not be used where no type is specified";
        found.push(FieldError::forbidden(&at, detail));
    }
    for (index, rule) in rules.iter().enumerate() {
        let words = rule.as_object().into_iter().flat_map(Map::keys);
        for word in words.filter(|word| !RULE_FIELDS.contains(&word.as_str())) {
            let at = at.index(index).child(word);
            found.push(FieldError::forbidden(&at, "is no field of a rule"));
        }
    }
}
