//! Rules for the schemas of a kind, and for the fields by which its objects can be selected.

use apiloom_meta::interrupt::is_interrupted;
use apiloom_meta::schema::{Schema, structural};
use apiloom_meta::{FieldError, FieldPath, JsonPath, codec};
use serde_json::Value;

use super::accepted::JudgedSchema;
use crate::apiextensions::v1::CustomResourceDefinitionVersion;

/// Maximum number of fields by which objects of a version can be selected.
const MAX_SELECTABLE: usize = 8;

/// What follows the path of a schema in those of its rules.
const RULES: &str = ".x-kubernetes-validations";

/// The place at which the schemas of all versions take too much memory in sum. Where there is one, none of them is looked at any
/// further.
pub(super) fn size_error(
    versions: &[CustomResourceDefinitionVersion],
    path: &FieldPath,
) -> Option<FieldError> {
    let mut footprint = structural::Footprint::default();
    let mut schemas = versions.iter().enumerate();
    schemas.find_map(|(at, version)| {
        let path = path.index(at).child("schema").child("openAPIV3Schema");
        footprint.add(schema_of(version)?, &path).err()
    })
}

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
    let judged = JudgedSchema::new(&codec::Encoder::json(schema));
    if judged.is_accepted(has_status) {
        return Vec::new();
    }
    let root = path.child("openAPIV3Schema");
    let structural::Refusals {
        mut errors,
        is_structural,
    } = structural::check(schema, &root, has_status);
    if is_structural {
        errors.extend(rule_errors(schema, &root, &errors));
    }
    // What it would say of keywords with errors is said already.
    if errors.is_empty()
        && let Err(problems) = Schema::of_custom_resource(schema)
    {
        let why = format!("error building validator: {}", problems.0.join("; "));
        errors.push(FieldError::invalid(path, "", &why));
    }
    if errors.is_empty() && !is_interrupted() {
        judged.accept(has_status);
    }
    errors
}

/// The errors of the rules in a schema with these errors. As in kube-apiserver, the rules of a part of the schema that has
/// errors, or of anything around it, are not compiled. Rules without errors are those of its defaults too.
fn rule_errors(schema: &Value, root: &FieldPath, found: &[FieldError]) -> Vec<FieldError> {
    let is_within = |path: &FieldPath, part: &str| {
        let below = path.as_str().strip_prefix(part);
        below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
    };
    let apiloom_cel::Compilation { rules, mut errors } = apiloom_cel::compile(schema, root);
    if let Some(rules) = rules.filter(|_| errors.is_empty()) {
        return rules.default_errors(schema, root);
    }
    errors.retain(|error| {
        let path = error.path.as_str();
        let part = path.rfind(RULES).map_or(root.as_str(), |end| &path[..end]);
        !found.iter().any(|found| is_within(&found.path, part))
    });
    errors
}

fn schema_of(version: &CustomResourceDefinitionVersion) -> Option<&Value> {
    let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref();
    schema.map(|schema| &schema.0)
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

/// The formats in schemas that mean nothing to the server, each once.
pub(super) fn unknown_formats<'s>(schemas: impl Iterator<Item = &'s Value>) -> Vec<String> {
    let mut unknown: Vec<String> = Vec::new();
    for schema in schemas {
        let found = structural::unknown_formats(schema).into_iter();
        let new: Vec<String> = found.filter(|format| !unknown.contains(format)).collect();
        unknown.extend(new);
    }
    unknown
}

/// A warning of each format.
pub(super) fn format_warnings(formats: &[String]) -> Vec<String> {
    let formats = formats.iter();
    formats
        .map(|format| format!("unrecognized format {format:?}"))
        .collect()
}
