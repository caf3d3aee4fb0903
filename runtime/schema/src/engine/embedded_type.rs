//! The type of an embedded object.

use serde_json::{Map, Value};

use super::walk_path::Path;
use crate::field::FieldError;
use crate::names;

/// The errors of the type of an embedded object, which must have apiVersion and kind; its metadata is optional.
pub(super) fn embedded_type_errors(
    fields: &Map<String, Value>,
    path: &Path<'_>,
) -> Vec<FieldError> {
    let api_version = |text: &str| {
        if text.split('/').count() > 2 {
            Some(format!("unexpected GroupVersion string: {text}"))
        } else {
            None
        }
    };
    let kind = |text: &str| {
        let problems = names::dns1035_label(&text.to_ascii_lowercase());
        let problems = (!problems.is_empty()).then(|| problems.join(","));
        problems
            .map(|problems| format!("may have mixed case, but should otherwise match: {problems}"))
    };
    let mut errors = Vec::new();
    for name in ["apiVersion", "kind"] {
        let check = |text: &str| match name {
            "kind" => kind(text),
            _ => api_version(text),
        };
        let at = || Path::Field(path, name).field();
        match fields.get(name) {
            None => errors.push(FieldError::required(&at(), "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(
                    &at(),
                    text.as_str(),
                    "must not be empty",
                ));
            }
            Some(Value::String(text)) => {
                if let Some(problem) = check(text) {
                    errors.push(FieldError::invalid(&at(), text.as_str(), &problem));
                }
            }
            // A value of another type is reported elsewhere.
            Some(_) => {}
        }
    }
    errors
}
