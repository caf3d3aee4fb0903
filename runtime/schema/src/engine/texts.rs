//! The texts of errors that differ: compiled kinds have those of Kubernetes' `field.Error`, custom resources those of kube-openapi,
//! most of which begin with the name of the field.

use serde_json::{Number, Value};

use super::go_numbers;
use super::node::{Node, Types};
use super::validation_dialect::ValidationDialect;
use super::walk_path::Path;
use crate::field::{FieldError, FieldErrorKind, FieldPath, go_quote};

impl ValidationDialect {
    /// The value has none of the types of the node. The text has the type of the value, not the value.
    pub(super) fn wrong_type(&self, node: &Node, value: &Value, path: &Path<'_>) -> FieldError {
        let at = path.field();
        let is_integer = |number: &Number| {
            if self.has_go_numbers {
                go_numbers::has_integer_syntax(number)
            } else {
                !number.is_f64()
            }
        };
        let (found, format) = match value {
            Value::Null => ("null", None),
            Value::Bool(_) => ("boolean", Some("")),
            Value::String(_) => ("string", None),
            Value::Array(_) => ("array", None),
            Value::Object(_) => ("object", Some("")),
            Value::Number(number) if is_integer(number) => ("integer", Some("int64")),
            Value::Number(_) => ("number", Some("float64")),
        };
        let (expected, found) = match (&node.format, format) {
            _ if !self.has_openapi_texts => (node.types.names().join(" or "), found),
            (Some(expected), Some(format)) => (expected.clone(), format),
            _ if node.types == Types::INTEGER.union(Types::STRING) => {
                ("integer,string".to_owned(), found)
            }
            _ => (node.types.names().join(","), found),
        };
        mistyped(&at, found, &expected, found)
    }

    /// The text has more characters than `max`.
    pub(super) fn too_long(&self, max: usize, path: &Path<'_>) -> FieldError {
        if self.has_openapi_texts {
            return FieldError::too_long(&path.field(), max);
        }
        FieldError {
            kind: FieldErrorKind::TooLong,
            path: path.field(),
            body: format!("Too long: may not be more than {max} characters"),
        }
    }

    /// The text has fewer characters than `min`.
    pub(super) fn too_short(&self, text: &str, min: usize, path: &Path<'_>) -> FieldError {
        if self.has_openapi_texts {
            let detail = format!("should be at least {min} chars long");
            return named(text.into(), &detail, path);
        }
        FieldError::too_short(&path.field(), min)
    }

    /// The text does not have its format; `problem` is one of [`ValidationDialect::format_problems`].
    pub(super) fn misformatted(&self, text: &str, problem: &str, path: &Path<'_>) -> FieldError {
        if self.has_openapi_texts {
            return mistyped(&path.field(), text, problem, text);
        }
        FieldError::invalid(&path.field(), text, problem)
    }

    /// There are fewer entries than `min`; `entries` is `items` or `properties`.
    pub(super) fn too_few(
        &self,
        actual: usize,
        min: usize,
        entries: &str,
        path: &Path<'_>,
    ) -> FieldError {
        if self.has_openapi_texts {
            let detail = format!("should have at least {min} {entries}");
            return named(actual.into(), &detail, path);
        }
        FieldError::too_few(&path.field(), actual, min)
    }

    /// The number is not as wanted, such as `less than 5`.
    pub(super) fn unwanted(&self, value: &Number, wanted: &str, path: &Path<'_>) -> FieldError {
        if self.has_openapi_texts {
            let detail = format!("should be {wanted}");
            return named(go_numbers::shown(value), &detail, path);
        }
        FieldError::invalid(&path.field(), value, &format!("must be {wanted}"))
    }

    /// The value matches the schema of `not`.
    pub(super) fn excluded(&self, value: &Value, path: &Path<'_>) -> FieldError {
        if self.has_openapi_texts {
            return unplaced("must not validate the schema (not)", path);
        }
        FieldError::invalid(&path.field(), value, "must not be of the excluded form")
    }
}

fn mistyped(at: &FieldPath, value: &str, expected: &str, found: &str) -> FieldError {
    let (name, found) = (at.as_str(), go_quote(found));
    let detail = format!("{name} in body must be of type {expected}: {found}");
    FieldError::type_invalid(at, value, &detail)
}

/// An error whose detail begins with the name of the field.
fn named(value: Value, detail: &str, path: &Path<'_>) -> FieldError {
    let at = path.field();
    FieldError::invalid(&at, value, &format!("{} in body {detail}", at.as_str()))
}

/// An error whose path is only in its text, as kube-openapi has for alternatives.
pub(super) fn unplaced(detail: &str, path: &Path<'_>) -> FieldError {
    let detail = format!("{} {detail}", go_quote(path.field().as_str()));
    FieldError::invalid(&FieldPath::root(), "", &detail)
}
