//! Checks whether kube-apiserver accepts a schema in a CustomResourceDefinition, with its paths and texts.
//!
//! Expressions of `x-kubernetes-validations` are not compiled here, so the use of `oldSelf` in them is not checked.

mod defaults;
mod field_path;
mod footprint;
mod form;
mod ignored;
mod keywords;
mod reading;
mod rules;
mod types;
mod unknown;

use serde_json::Value;

use self::reading::{has, is_true, text};
use crate::field::{FieldError, FieldPath};

pub use self::field_path::{FieldPathError, field_path_type};
pub use self::footprint::{Footprint, MAX_FOOTPRINT};
#[doc(hidden)]
pub use self::types::type_error;
#[doc(hidden)]
pub use self::unknown::{drop_unknown, schema_node};
pub use super::known_formats::is_known_format;

/// The formats in a schema that kube-apiserver ignores, each once, in the order of the schema: a definition with them
/// gets the warning `unrecognized format "x"`.
pub fn unknown_formats(schema: &Value) -> Vec<String> {
    fn walk(schema: &Value, found: &mut Vec<String>) {
        let json_type = text(schema, "type").filter(|_| !is_true(schema, reading::INT_OR_STRING));
        if let Some(format) = text(schema, "format")
            && !is_known_format(json_type, format)
            && !found.iter().any(|known| known == format)
        {
            found.push(format.to_owned());
        }
        for part in reading::all_parts(schema) {
            walk(part, found);
        }
    }
    let mut found = Vec::new();
    walk(schema, &mut found);
    found
}

/// The reasons why kube-apiserver refuses a schema as `openAPIV3Schema` of a CustomResourceDefinition. `path` is that of
/// the schema, for instance `spec.validation.openAPIV3Schema`; with the subresource `status`, the root may have fewer
/// keywords.
///
/// ```
/// use apiloom_schema::{FieldPath, structural::refusals};
/// use serde_json::json;
/// let schema = json!({"type": "object", "properties": {"spec": {"type": "array"}}});
/// let found = refusals(&schema, &FieldPath::new("schema"), false);
/// assert_eq!(found[0].to_string(), "schema.properties[spec].items: Required value: must be specified");
/// ```
pub fn refusals(schema: &Value, path: &FieldPath, has_status: bool) -> Vec<FieldError> {
    check(schema, path, has_status).errors
}

/// What is wrong with a schema.
#[derive(Debug)]
pub struct Refusals {
    /// The reasons why kube-apiserver refuses it.
    pub errors: Vec<FieldError>,
    /// Whether its form and its defaults have no errors. Only then does kube-apiserver compile its rules, and it reports their
    /// errors besides those of other keywords.
    pub is_structural: bool,
}

/// As [`refusals`], and whether the rules of the schema can be compiled.
pub fn check(schema: &Value, path: &FieldPath, has_status: bool) -> Refusals {
    let mut found = Vec::new();
    let mut is_structural = false;
    if !schema.is_object() {
        found.push(FieldError::invalid(path, schema, "must be a schema"));
        return Refusals {
            errors: found,
            is_structural,
        };
    }
    if has_status {
        found.extend(root_beside_status(schema, path));
    }
    if is_true(schema, "nullable") {
        let detail = "nullable cannot be true at the root";
        found.push(FieldError::forbidden(&path.child("nullable"), detail));
    }
    // Schemas with these keywords have no structure; the keywords themselves are reported below.
    if !keywords::has_unsupported(schema) {
        let mut of_structure = form::check(schema, path);
        if of_structure.is_empty() {
            of_structure = defaults::check(schema, path);
        }
        is_structural = of_structure.is_empty();
        found.extend(of_structure);
    }
    found.extend(keywords::check(schema, path));
    Refusals {
        errors: found,
        is_structural,
    }
}

/// What is wrong with the texts of the rules of one schema, without a look at their expressions: rules of a schema with such
/// errors are not compiled.
pub fn rule_problems(schema: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut found = Vec::new();
    rules::texts(schema, path, &mut found);
    found
}

/// As [`refusals`], and what kube-apiserver would ignore or drop: unknown formats and keywords. For generated
/// definitions, in which everything should have an effect.
///
/// ```
/// use apiloom_schema::{FieldPath, structural::problems};
/// use serde_json::json;
/// let schema = json!({"type": "object", "const": {}});
/// let found = problems(&schema, &FieldPath::new("schema"));
/// assert_eq!(found[0].to_string(), "schema.const: Forbidden: is not supported");
/// ```
pub fn problems(schema: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut found = refusals(schema, path, false);
    if schema.is_object() {
        found.extend(ignored::check(schema, path));
    }
    found
}

/// The keywords that a root with the subresource `status` may have, as they are in kube-apiserver's text.
const BESIDE_STATUS: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "XPreserveUnknownFields",
    ),
    ("x-kubernetes-validations", "XValidations"),
];

fn root_beside_status(schema: &Value, path: &FieldPath) -> Option<FieldError> {
    if let Some(json_type) = text(schema, "type").filter(|json_type| *json_type != "object") {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(FieldError::invalid(&path.child("type"), json_type, detail));
    }
    let is_allowed = |name: &str| BESIDE_STATUS.iter().any(|(keyword, _)| *keyword == name);
    let mut keywords = reading::KEYWORDS.iter();
    keywords.find(|name| has(schema, name) && !is_allowed(name))?;
    let names: Vec<&str> = BESIDE_STATUS.iter().map(|(_, name)| *name).collect();
    let detail = format!(
        "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
        names.join(" ")
    );
    Some(FieldError::invalid(path, schema, &detail))
}

#[cfg(test)]
mod tests;
