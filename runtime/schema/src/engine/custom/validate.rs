//! Validates a custom resource as kube-openapi does, with its texts, and tolerates errors of values that an update does
//! not change.

use std::collections::HashSet;

use serde_json::Value;

use super::super::error_list::ErrorList;
use super::super::node::Node;
use super::super::validate::judge;
use super::super::validation_dialect::ValidationDialect;
use super::parts::check_embedded;
use super::{formats, lists};
use crate::field::{FieldError, FieldPath};

/// The validation of custom resources.
pub(in super::super) static CUSTOM: ValidationDialect = ValidationDialect {
    validate,
    validate_field,
    is_in_enum: |rules, value| rules.enum_index.contain(&rules.values, value),
    format_problems: |format, text| {
        if formats::is_valid(format, text) {
            Vec::new()
        } else {
            vec![format.to_owned()]
        }
    },
    has_openapi_texts: true,
    is_in_openapi_order: true,
    stops_early: false,
    reports_first_of_text: true,
    judges_nulls: true,
    leaves_typed: true,
    leaves_lists_to_formats: true,
    has_go_numbers: true,
    tolerates_unchanged: true,
    reports_best_branch: true,
    has_passes: true,
    dots_entries: true,
};

/// The errors of an object, or of an update of it: types and values, then embedded objects, then the identity of list
/// items.
fn validate(root: &Node, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = of_values(root, new, old);
    duplicates(root, new, old, &mut errors);
    distinct(errors)
}

/// The errors of an update of one field of an object, such as its status: those of the types and values of the field, in
/// whose texts paths begin at the field, then those of the identity of list items of the whole object.
fn validate_field(root: &Node, field: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let (Some(property), Some(value)) = (root.property(field), new.get(field)) {
        let old = old.get(field).filter(|old| !old.is_null());
        errors = distinct(judge(&CUSTOM, &property.node, value, old));
        let place = FieldPath::new(field);
        for error in &mut errors {
            error.path = below(&place, &error.path);
        }
    }
    let mut of_lists = ErrorList::default();
    duplicates(root, new, Some(old), &mut of_lists);
    errors.extend(distinct(of_lists));
    errors
}

/// The errors of a value by itself, as that of a default. The values of an object without its type are not looked at.
pub(super) fn default_errors(node: &Node, value: &Value) -> Vec<FieldError> {
    let mut of_types = ErrorList::default();
    check_embedded(node, value, &mut of_types);
    if of_types.found() == 0 {
        of_types = of_values(node, value, None);
    }
    distinct(of_types)
}

/// The path of an error in a value that is validated by itself, such as a default or the status.
pub(super) fn below(place: &FieldPath, path: &FieldPath) -> FieldPath {
    match path.as_str() {
        "" => place.clone(),
        path => place.child(path.strip_prefix('.').unwrap_or(path)),
    }
}

/// The errors of types and values, and of embedded objects.
fn of_values(node: &Node, new: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = judge(&CUSTOM, node, new, old);
    check_embedded(node, new, &mut errors);
    errors
}

/// Checks the identity of list items. Lists with duplicates may be changed until they have none.
fn duplicates(root: &Node, new: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let had_duplicates = old.is_some_and(|old| {
        let mut of_old = ErrorList::default();
        lists::check(root, old, &mut of_old);
        of_old.found() > 0
    });
    if !had_duplicates {
        lists::check(root, new, errors);
    }
}

/// The errors, those with equal texts once.
fn distinct(errors: ErrorList) -> Vec<FieldError> {
    let mut seen = HashSet::new();
    let mut errors = errors.into_errors();
    errors.retain(|error| seen.insert((error.path.clone(), error.body.clone())));
    errors
}
