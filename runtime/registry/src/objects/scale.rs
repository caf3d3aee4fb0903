//! The Scale of an object: its number of replicas, for autoscalers and `kubectl scale`.

use apiloom_meta::field::go_quote;
use apiloom_meta::go_value::{go_text, go_type};
use apiloom_meta::kind::ScalePaths;
use apiloom_meta::{ApiError, FieldError, FieldPath, JsonPath, Object};
use serde_json::{Value, json};

/// The Scale of an object, without managedFields. Zero is left out of the spec, as in kube-apiserver.
///
/// # Errors
/// InternalError if the object has no number of replicas; as [`scale_or`].
pub(crate) fn scale_of(paths: &ScalePaths, object: &Object) -> Result<Object, ApiError> {
    if paths.spec.get_in(object.fields()).is_some() {
        return scale_or(paths, object, 0);
    }
    let path = go_quote(&paths.spec.to_string());
    Err(ApiError::internal(format!(
        "the spec replicas field {path} does not exist"
    )))
}

/// As [`scale_of`]; `missing` stands for the number of an object that has none.
///
/// # Errors
/// If one of the fields is of another type, as in an object that is older than the paths.
pub(crate) fn scale_or(
    paths: &ScalePaths,
    object: &Object,
    missing: i64,
) -> Result<Object, ApiError> {
    let number = |path| {
        let found = value_at(path, object, Value::is_i64, "int64");
        let found = found.map_err(ApiError::internal_text)?;
        Ok::<_, ApiError>(found.and_then(Value::as_i64))
    };
    let spec = match number(&paths.spec)?.unwrap_or(missing) {
        0 => json!({}),
        replicas => json!({ "replicas": replicas }),
    };
    let mut status = json!({ "replicas": number(&paths.status)?.unwrap_or(0) });
    if let Some(path) = &paths.selector {
        let selector = value_at(path, object, Value::is_string, "string");
        let selector = selector.map_err(ApiError::internal_text)?;
        if let Some(selector) = selector.filter(|selector| *selector != "") {
            status["selector"] = selector.clone();
        }
    }
    let mut scale = Object::default();
    scale.set_type("autoscaling/v1", "Scale");
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        scale.set_meta_str(field, object.meta_str(field));
    }
    scale.set_field("spec", Some(spec));
    scale.set_field("status", Some(status));
    Ok(scale)
}

/// The fields of a Scale that a write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScaleFields {
    /// The numbers of the spec and of the status.
    All,
    /// The number of the status.
    Status,
}

/// The errors of the fields that an object's Scale shows, with the texts of kube-apiserver for custom resources.
pub(crate) fn scale_errors(
    paths: &ScalePaths,
    object: &Object,
    fields: ScaleFields,
) -> Vec<FieldError> {
    let spec = (fields == ScaleFields::All).then_some(&paths.spec);
    let numbers = spec.into_iter().chain([&paths.status]);
    let selector = paths.selector.iter();
    numbers
        .filter_map(|path| number_error(path, object))
        .chain(selector.filter_map(|path| selector_error(path, object)))
        .collect()
}

/// The error of a number of replicas.
fn number_error(path: &JsonPath, object: &Object) -> Option<FieldError> {
    let found = value_at(path, object, Value::is_i64, "int64");
    let (number, why) = match found.map(|found| found.and_then(Value::as_i64)) {
        Err(why) => (0, why),
        Ok(Some(number)) if number < 0 => (number, "should be a non-negative integer".to_owned()),
        Ok(Some(number)) if number > i64::from(i32::MAX) => {
            let why = format!("should be less than or equal to {}", i32::MAX);
            (number, why)
        }
        Ok(_) => return None,
    };
    let path = FieldPath::new(path.to_string());
    Some(FieldError::invalid(&path, number, &why))
}

/// The error of a selector that is no text.
fn selector_error(path: &JsonPath, object: &Object) -> Option<FieldError> {
    let why = value_at(path, object, Value::is_string, "string").err()?;
    let path = FieldPath::new(path.to_string());
    Some(FieldError::invalid(&path, "", &why))
}

/// The value at a path, if there is one.
///
/// # Errors
/// If it, or a value on the way to it, is of another type, with kube-apiserver's text.
fn value_at<'o>(
    path: &JsonPath,
    object: &'o Object,
    is_of_type: fn(&Value) -> bool,
    expected: &str,
) -> Result<Option<&'o Value>, String> {
    let accessor_error = |names: &[String], found: &Value, expected: &str| {
        let (names, text, kind) = (names.join("."), go_text(found), go_type(found));
        format!(".{names} accessor error: {text} is of the type {kind}, expected {expected}")
    };
    let mut found = object.as_value();
    for (index, name) in path.names().iter().enumerate() {
        found = match found {
            Value::Object(fields) => match fields.get(name) {
                Some(below) => below,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => {
                let names = &path.names()[..=index];
                return Err(accessor_error(names, other, "map[string]interface{}"));
            }
        };
    }
    if is_of_type(found) {
        return Ok(Some(found));
    }
    Err(accessor_error(path.names(), found, expected))
}
