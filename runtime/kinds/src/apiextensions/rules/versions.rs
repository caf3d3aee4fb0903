//! Rules for the versions of a kind.

use apiloom_meta::field::is_printable;
use apiloom_meta::names::dns1035_label;
use apiloom_meta::{FieldError, FieldPath};
use apiloom_registry::RequestContext;
use serde::Serialize;
use serde_json::{Value, json};

use super::schema::{schema_errors, selectable_errors, size_error};
use crate::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion,
    CustomResourceSubresourceScale,
};

/// Maximum length of a deprecation warning, in bytes.
const MAX_WARNING_BYTES: usize = 256;

/// Of the versions, which may be none.
pub(super) const ONE_STORAGE_VERSION: &str =
    "must have exactly one version marked as storage version";

/// The types of columns, sorted.
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

/// The formats of columns, sorted.
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// Where errors of a part of a version are: kube-apiserver moves what all versions have in common to the top.
fn place<T: PartialEq>(
    spec: &CustomResourceDefinitionSpec,
    part: impl Fn(&CustomResourceDefinitionVersion) -> Option<&T>,
) -> Place {
    let first = spec.versions.first().and_then(&part);
    let is_common = first.is_some() && spec.versions.iter().all(|version| part(version) == first);
    if is_common {
        Place::Top
    } else {
        Place::Version
    }
}

/// See [`place`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    Version,
}

/// The errors of all versions; `ctx` says whether their size was counted before.
pub(super) fn version_errors(
    ctx: &RequestContext,
    spec: &CustomResourceDefinitionSpec,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let versions = path.child("versions");
    for (at, version) in spec.versions.iter().enumerate() {
        let has_schema = version
            .schema
            .as_ref()
            .is_some_and(|schema| schema.open_api_v3_schema.is_some());
        if !has_schema {
            let path = versions.index(at).child("schema").child("openAPIV3Schema");
            errors.push(FieldError::required(&path, ""));
        }
    }
    if !ctx.has_reservation()
        && let Some(error) = size_error(&spec.versions, &versions)
    {
        errors.push(error);
        return errors;
    }
    let schemas = place(spec, |version| version.schema.as_ref());
    let subresources = place(spec, |version| version.subresources.as_ref());
    let columns = place(spec, |version| {
        Some(&version.additional_printer_columns).filter(|columns| !columns.is_empty())
    });
    let fields = place(spec, |version| {
        Some(&version.selectable_fields).filter(|fields| !fields.is_empty())
    });
    for (at, version) in spec.versions.iter().enumerate() {
        let own = versions.index(at);
        let complaints = dns1035_label(&version.name);
        if !complaints.is_empty() {
            let path = own.child("name");
            errors.push(FieldError::invalid(
                &path,
                &version.name,
                &complaints.join(","),
            ));
        }
        errors.extend(warning_errors(version, &own.child("deprecationWarning")));
        // What is common is checked once.
        let at_place = |place: Place, top: &str, below: &str| match place {
            Place::Top if at > 0 => None,
            Place::Top => Some(path.child(top)),
            Place::Version => Some(own.child(below)),
        };
        if let Some(path) = at_place(schemas, "validation", "schema") {
            errors.extend(schema_errors(version, &path));
        }
        if let Some(path) = at_place(subresources, "subresources", "subresources")
            && let Some(scale) = version
                .subresources
                .as_ref()
                .and_then(|sub| sub.scale.as_ref())
        {
            errors.extend(scale_errors(scale, &path));
        }
        let name = "additionalPrinterColumns";
        if let Some(path) = at_place(columns, name, name) {
            let all = version.additional_printer_columns.iter().enumerate();
            errors.extend(all.flat_map(|(at, column)| column_errors(column, &path.index(at))));
        }
        if let Some(path) = at_place(fields, "selectableFields", "selectableFields") {
            errors.extend(
                if fields == schemas || version.selectable_fields.is_empty() {
                    selectable_errors(version, &path)
                } else {
                    vec![apart_from_schema(fields, &path)]
                },
            );
        }
    }
    let shown = || -> Vec<Shown<'_>> {
        let places = [schemas, subresources, columns, fields].map(|place| place == Place::Top);
        let all = spec.versions.iter().map(|version| shown(version, places));
        all.collect()
    };
    let names: Vec<&str> = spec.versions.iter().map(|version| &*version.name).collect();
    let is_repeated = (1..names.len()).any(|at| names[..at].contains(&names[at]));
    if is_repeated {
        let why = "must contain unique version names";
        errors.push(FieldError::invalid(&versions, shown(), why));
    }
    let stored = spec.versions.iter().filter(|version| version.storage);
    if stored.count() != 1 {
        errors.push(FieldError::invalid(&versions, shown(), ONE_STORAGE_VERSION));
    }
    // The first version is that of the kind, too, if it has a name.
    if let Some(first) = names.first().filter(|name| !name.is_empty()) {
        let complaints = dns1035_label(first);
        if !complaints.is_empty() {
            let path = path.child("version");
            errors.push(FieldError::invalid(&path, *first, &complaints.join(",")));
        }
    }
    errors
}

/// The error for selectable fields that kube-apiserver moves to the top without the schemas, or leaves in their version when
/// it moves the schemas: it looks for the schema where the fields are.
fn apart_from_schema(fields: Place, path: &FieldPath) -> FieldError {
    let why = match fields {
        Place::Top => "may only be set when validations.schema is included",
        Place::Version => "may only be set when `version.schema.openAPIV3Schema` is not included",
    };
    FieldError::invalid(path, "", why)
}

/// A version in errors, as kube-apiserver shows it. What all versions have in common is not in them.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Shown<'v> {
    name: &'v str,
    served: bool,
    storage: bool,
    deprecated: bool,
    deprecation_warning: Option<&'v str>,
    schema: Option<ShownSchema>,
    subresources: Option<ShownSubresources<'v>>,
    additional_printer_columns: Option<Vec<ShownColumn<'v>>>,
    selectable_fields: Option<Vec<ShownField<'v>>>,
}

#[derive(Serialize)]
struct ShownSchema {
    #[serde(rename = "OpenAPIV3Schema")]
    schema: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ShownSubresources<'v> {
    status: Option<Value>,
    scale: Option<ShownScale<'v>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ShownScale<'v> {
    spec_replicas_path: &'v str,
    status_replicas_path: &'v str,
    label_selector_path: Option<&'v str>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ShownColumn<'v> {
    name: &'v str,
    r#type: &'v str,
    format: &'v str,
    description: &'v str,
    priority: i32,
    #[serde(rename = "JSONPath")]
    json_path: &'v str,
}

#[derive(Serialize)]
struct ShownField<'v> {
    #[serde(rename = "JSONPath")]
    json_path: &'v str,
}

fn shown(version: &CustomResourceDefinitionVersion, is_common: [bool; 4]) -> Shown<'_> {
    let [schema, subresources, columns_are_common, fields] = is_common;
    let schema = version.schema.as_ref().filter(|_| !schema);
    let schema = schema.map(|schema| ShownSchema {
        schema: json!(schema.open_api_v3_schema),
    });
    let subresources = version.subresources.as_ref().filter(|_| !subresources);
    let subresources = subresources.map(|sub| ShownSubresources {
        status: sub.status.as_ref().map(|_| json!({})),
        scale: sub.scale.as_ref().map(|scale| ShownScale {
            spec_replicas_path: &scale.spec_replicas_path,
            status_replicas_path: &scale.status_replicas_path,
            label_selector_path: scale.label_selector_path.as_deref(),
        }),
    });
    let columns = version.additional_printer_columns.iter();
    let columns: Vec<ShownColumn<'_>> = columns
        .filter(|_| !columns_are_common)
        .map(|column| ShownColumn {
            name: &column.name,
            r#type: &column.column_type,
            format: column.format.as_deref().unwrap_or_default(),
            description: column.description.as_deref().unwrap_or_default(),
            priority: column.priority.unwrap_or_default(),
            json_path: &column.json_path,
        })
        .collect();
    let fields: Vec<ShownField<'_>> = version
        .selectable_fields
        .iter()
        .filter(|_| !fields)
        .map(|field| ShownField {
            json_path: &field.json_path,
        })
        .collect();
    Shown {
        name: &version.name,
        served: version.served,
        storage: version.storage,
        deprecated: version.deprecated.unwrap_or_default(),
        deprecation_warning: version.deprecation_warning.as_deref(),
        schema,
        subresources,
        additional_printer_columns: (!columns.is_empty()).then_some(columns),
        selectable_fields: (!fields.is_empty()).then_some(fields),
    }
}

fn warning_errors(version: &CustomResourceDefinitionVersion, path: &FieldPath) -> Vec<FieldError> {
    let Some(warning) = &version.deprecation_warning else {
        return Vec::new();
    };
    if version.deprecated != Some(true) {
        let why = "can only be set for deprecated versions";
        return vec![FieldError::invalid(path, warning, why)];
    }
    let mut problems = Vec::new();
    if warning.len() > MAX_WARNING_BYTES {
        problems.push(format!("must be <= {MAX_WARNING_BYTES} characters long"));
    }
    if warning.is_empty() {
        problems.push("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !is_printable(*c)) {
        problems.push(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
    problems
        .iter()
        .map(|why| FieldError::invalid(path, warning, why))
        .collect()
}

fn scale_errors(scale: &CustomResourceSubresourceScale, path: &FieldPath) -> Vec<FieldError> {
    let check = |field: &str, text: &str, parents: &[&str]| {
        let path = path.child(&format!("scale.{field}"));
        if let Some(error) = path_error(text, &path) {
            return Some(error);
        }
        let is_below = |parent: &&str| text.starts_with(&format!("{parent}."));
        if parents.iter().any(is_below) {
            return None;
        }
        let why = match parents {
            [one] => format!("should be a json path under {one}"),
            all => format!("should be a json path under either {}", all.join(" or ")),
        };
        Some(FieldError::invalid(&path, text, &why))
    };
    let required = |field: &str, text: &str, parents: &[&str]| {
        if text.is_empty() {
            let path = path.child(&format!("scale.{field}"));
            return Some(FieldError::required(&path, ""));
        }
        check(field, text, parents)
    };
    let selector = scale.label_selector_path.as_deref();
    let selector = selector.filter(|text| !text.is_empty());
    let selector =
        selector.and_then(|text| check("labelSelectorPath", text, &[".spec", ".status"]));
    [
        required("specReplicasPath", &scale.spec_replicas_path, &[".spec"]),
        required(
            "statusReplicasPath",
            &scale.status_replicas_path,
            &[".status"],
        ),
        selector,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The error of a JSONPath that does not begin with a dot.
fn path_error(text: &str, path: &FieldPath) -> Option<FieldError> {
    (!text.starts_with('.'))
        .then(|| FieldError::invalid(path, text, "must be a simple json path starting with ."))
}

fn column_errors(column: &CustomResourceColumnDefinition, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if column.name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    if column.column_type.is_empty() {
        errors.push(FieldError::required(&path.child("type"), &types));
    } else if !COLUMN_TYPES.contains(&column.column_type.as_str()) {
        let path = path.child("type");
        errors.push(FieldError::invalid(&path, &column.column_type, &types));
    }
    let format = column.format.as_deref().unwrap_or_default();
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(FieldError::invalid(&path.child("format"), format, &why));
    }
    let json_path = path.child("JSONPath");
    if column.json_path.is_empty() {
        errors.push(FieldError::required(&json_path, ""));
    } else {
        errors.extend(path_error(&column.json_path, &json_path));
    }
    errors
}
