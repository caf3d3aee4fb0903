//! The Scale of an object: its number of replicas, for autoscalers and `kubectl scale`.

use apiloom_meta::field::go_quote;
use apiloom_meta::kind::ScalePaths;
use apiloom_meta::{ApiError, FieldError, FieldPath, JsonPath, Object};
use serde_json::{Value, json};

/// The Scale of an object, without managedFields. Zero is left out of the spec, as in kube-apiserver.
///
/// # Errors
/// InternalError if the object has no number of replicas.
pub(crate) fn scale_of(paths: &ScalePaths, object: &Object) -> Result<Object, ApiError> {
    match number_at(paths, object) {
        Some(replicas) => Ok(scale_with(paths, object, replicas)),
        None => {
            let path = go_quote(&paths.spec.to_string());
            Err(ApiError::internal(format!(
                "the spec replicas field {path} does not exist"
            )))
        }
    }
}

/// The number of replicas of an object; `None` if it has none.
pub(crate) fn number_at(paths: &ScalePaths, object: &Object) -> Option<i64> {
    paths.spec.get_in(object.fields()).and_then(Value::as_i64)
}

/// The Scale of an object with this number of replicas.
pub(crate) fn scale_with(paths: &ScalePaths, object: &Object, replicas: i64) -> Object {
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
    let spec = if replicas == 0 {
        json!({})
    } else {
        json!({ "replicas": replicas })
    };
    scale.set_field("spec", Some(spec));
    let present = paths.status.get_in(object.fields());
    let present = present.and_then(Value::as_i64).unwrap_or(0);
    let mut status = json!({ "replicas": present });
    let selector = paths.selector.as_ref();
    let selector = selector.and_then(|path| path.get_in(object.fields())?.as_str());
    if let Some(selector) = selector.filter(|text| !text.is_empty()) {
        status["selector"] = selector.into();
    }
    scale.set_field("status", Some(status));
    scale
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
    let check = |path: &JsonPath| {
        let number = path.get_in(object.fields())?.as_i64()?;
        let why = if number < 0 {
            "should be a non-negative integer".to_owned()
        } else if number > i64::from(i32::MAX) {
            format!("should be less than or equal to {}", i32::MAX)
        } else {
            return None;
        };
        Some(FieldError::invalid(
            &FieldPath::new(path.to_string()),
            number,
            &why,
        ))
    };
    let spec = (fields == ScaleFields::All).then_some(&paths.spec);
    spec.into_iter()
        .chain([&paths.status])
        .filter_map(check)
        .collect()
}
