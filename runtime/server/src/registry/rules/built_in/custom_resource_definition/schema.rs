//! Rules for the schemas of a kind, and for the fields by which its objects can be selected.

use apiloom_apis::apiextensions::v1::CustomResourceDefinitionVersion;
use apiloom_meta::schema::{Schema, structural};
use apiloom_meta::{FieldError, FieldPath, JsonPath};
use serde_json::Value;

/// Maximum number of fields by which objects of a version can be selected.
const MAX_SELECTABLE: usize = 8;

/// The errors of the schema of a version.
pub(super) fn schema_errors(
    version: &CustomResourceDefinitionVersion,
    path: &FieldPath,
) -> Vec<FieldError> {
    let Some(schema) = schema_of(version) else {
        return Vec::new();
    };
    let subresources = version.subresources.as_ref();
    let has_status = subresources.is_some_and(|subresources| subresources.status.is_some());
    let root = path.child("openAPIV3Schema");
    let errors = structural::refusals(schema, &root, has_status);
    if !errors.is_empty() {
        return errors;
    }
    match Schema::of_custom_resource(schema) {
        // Its rules are those of a schema in order: they have its types, and costs by its limits.
        Ok(_) => apiloom_cel::compile(schema, &root).errors,
        Err(problems) => {
            let why = format!("error building validator: {}", problems.0.join("; "));
            vec![FieldError::invalid(path, "", &why)]
        }
    }
}

fn schema_of(version: &CustomResourceDefinitionVersion) -> Option<&Value> {
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

/// The errors of the fields by which objects of a version can be selected.
pub(super) fn selectable_errors(
    version: &CustomResourceDefinitionVersion,
    path: &FieldPath,
) -> Vec<FieldError> {
    let fields = &version.selectable_fields;
    // A version without a schema has an error for that.
    let Some(schema) = schema_of(version) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let mut seen: Vec<JsonPath> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let path = path.index(at).child("jsonPath");
        let text = field.json_path.as_str();
        if text.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let (names, json_type) = match structural::field_path_type(schema, text, false) {
            Ok(found) => found,
            Err(error) => {
                let why = format!("is an invalid path: {error}");
                errors.push(FieldError::invalid(&path, text, &why));
                continue;
            }
        };
        if names.names().first().is_some_and(|name| name == "metadata") {
            let why = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&path, text, why));
        }
        if !["string", "boolean", "integer"].contains(&json_type) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&path, text, why));
        }
        if seen.contains(&names) {
            errors.push(FieldError::duplicate(&path, text));
        } else {
            seen.push(names);
        }
    }
    if seen.len() > MAX_SELECTABLE {
        errors.push(FieldError::too_many(path, seen.len(), MAX_SELECTABLE));
    }
    errors
}

/// The formats in the schemas that mean nothing to the server, each once.
pub(super) fn unknown_formats(versions: &[CustomResourceDefinitionVersion]) -> Vec<String> {
    let mut unknown: Vec<String> = Vec::new();
    for schema in versions.iter().filter_map(schema_of) {
        let found = structural::unknown_formats(schema).into_iter();
        let new: Vec<String> = found.filter(|format| !unknown.contains(format)).collect();
        unknown.extend(new);
    }
    unknown
}
