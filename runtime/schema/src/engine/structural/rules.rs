//! The rules of `x-kubernetes-validations`, as far as they need no compilation.

use serde_json::Value;

use super::field_path::field_path_type;
use super::reading::VALIDATIONS;
use crate::field::{FieldError, FieldPath};

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Checks the texts of the rules of a schema.
pub(super) fn texts(schema: &Value, path: &FieldPath, found: &mut Vec<FieldError>) {
    let at = path.child(VALIDATIONS);
    match schema.get(VALIDATIONS) {
        None | Some(Value::Null) => {}
        Some(Value::Array(rules)) => {
            for (index, rule) in rules.iter().enumerate() {
                texts_of(schema, rule, &at.index(index), found);
            }
        }
        Some(other) => found.push(FieldError::invalid(&at, other, "must be a list of rules")),
    }
}

fn text<'a>(rule: &'a Value, name: &str) -> &'a str {
    rule.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn texts_of(schema: &Value, rule: &Value, at: &FieldPath, found: &mut Vec<FieldError>) {
    let has_break = |text: &str| text.contains(['\n', '\r']);
    let expression = text(rule, "rule").trim();
    let message = text(rule, "message");
    let at_message = at.child("message");
    if expression.is_empty() {
        found.push(FieldError::required(
            &at.child("rule"),
            "rule is not specified",
        ));
    } else if !message.is_empty() && message.trim().is_empty() {
        let detail = "must be non-empty if specified";
        found.push(FieldError::invalid(&at_message, message, detail));
    } else if has_break(message.trim()) {
        let detail = "must not contain line breaks";
        found.push(FieldError::invalid(&at_message, message, detail));
    } else if has_break(expression) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        found.push(FieldError::required(&at_message, detail));
    }
    let of_message = text(rule, "messageExpression");
    if !of_message.is_empty() && of_message.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        found.push(FieldError::required(&at.child("messageExpression"), detail));
    }
    if let Some(reason) = rule.get("reason").filter(|reason| !reason.is_null())
        && !reason.as_str().is_some_and(|it| REASONS.contains(&it))
    {
        let at = at.child("reason");
        found.push(FieldError::not_supported(&at, reason, &REASONS));
    }
    let field = text(rule, "fieldPath");
    let mut invalid =
        |detail: &str| found.push(FieldError::invalid(&at.child("fieldPath"), field, detail));
    if field.is_empty() {
        return;
    }
    if field.trim().is_empty() {
        invalid("must be non-empty if specified");
    }
    if has_break(field) {
        invalid("must not contain line breaks");
    }
    if field_path_type(schema, field, true).is_err() {
        invalid("must be a valid path");
    }
}
