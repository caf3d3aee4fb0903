//! Rules for the names of a kind.

use apiloom_meta::names::dns1035_label;
use apiloom_meta::{FieldError, FieldPath};

use crate::apiextensions::v1::CustomResourceDefinitionNames;

/// The errors of names that a spec does not have.
pub(super) fn name_errors(
    names: &CustomResourceDefinitionNames,
    path: &FieldPath,
) -> Vec<FieldError> {
    let required = [
        ("plural", Some(&names.plural)),
        ("singular", names.singular.as_ref()),
        ("kind", Some(&names.kind)),
        ("listKind", names.list_kind.as_ref()),
    ];
    let missing = required
        .into_iter()
        .filter(|(_, name)| name.is_none_or(String::is_empty));
    missing
        .map(|(field, _)| FieldError::required(&path.child(field), ""))
        .collect()
}

/// The errors of names with wrong characters.
pub(super) fn names_errors(
    names: &CustomResourceDefinitionNames,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut check = |path: &FieldPath, name: &str| {
        let complaints = dns1035_label(name);
        if !complaints.is_empty() {
            errors.push(FieldError::invalid(path, name, &complaints.join(",")));
        }
    };
    let lower = [
        ("plural", Some(&names.plural)),
        ("singular", names.singular.as_ref()),
    ];
    for (field, name) in lower {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            check(&path.child(field), name);
        }
    }
    for (at, name) in names.short_names.iter().enumerate() {
        check(&path.child("shortNames").index(at), name);
    }
    for (at, name) in names.categories.iter().enumerate() {
        check(&path.child("categories").index(at), name);
    }
    let mixed = [
        ("kind", Some(&names.kind)),
        ("listKind", names.list_kind.as_ref()),
    ];
    for (field, name) in mixed {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            continue;
        };
        let complaints = dns1035_label(&name.to_lowercase());
        if !complaints.is_empty() {
            let why = format!(
                "may have mixed case, but should otherwise match: {}",
                complaints.join(",")
            );
            errors.push(FieldError::invalid(&path.child(field), name, &why));
        }
    }
    if !names.kind.is_empty() && names.list_kind.as_ref() == Some(&names.kind) {
        errors.push(FieldError::invalid(
            &path.child("listKind"),
            &names.list_kind,
            "kind and listKind may not be the same",
        ));
    }
    errors
}
