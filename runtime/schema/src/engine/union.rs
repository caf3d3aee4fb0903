//! Unions among the fields of an object: which members are set, and whether the discriminator matches.

use serde_json::{Map, Value};

use super::error_list::ErrorList;
use super::node::{Node, Union, is_set};
use super::walk_path::Path;
use crate::field::{FieldError, go_quote};

type Fields = Map<String, Value>;

/// A union, and the object whose fields are its members.
#[derive(Clone, Copy)]
pub(crate) struct UnionFields<'a> {
    pub(crate) object: &'a Node,
    pub(crate) union: &'a Union,
    pub(crate) fields: &'a Fields,
    pub(crate) path: &'a Path<'a>,
}

/// Checks a union, unless discriminator and members are as before the update.
pub(crate) fn check(errors: &mut ErrorList, checked: UnionFields<'_>, old: Option<&Fields>) {
    let UnionFields {
        object,
        union,
        fields,
        path,
    } = checked;
    let members = || union.members.iter().map(|(name, _)| name.as_str());
    let unchanged = |old: &Fields| {
        selected(union, old) == selected(union, fields)
            && members().all(|name| is_set(object, old, name) == is_set(object, fields, name))
    };
    if old.is_some_and(unchanged) {
        return;
    }
    if let Some(discriminator) = &union.discriminator {
        discriminated(errors, checked, discriminator);
        return;
    }
    let set: Vec<&str> = members()
        .filter(|name| is_set(object, fields, name))
        .collect();
    if set.len() > 1 || (set.is_empty() && !union.allow_none) {
        errors.add(|| one_of(members(), &set, union.allow_none, path));
    }
}

/// The value of the discriminator; empty if absent.
fn selected<'a>(union: &Union, fields: &'a Fields) -> &'a str {
    let value = union
        .discriminator
        .as_ref()
        .and_then(|name| fields.get(name));
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Only the first violated rule is reported, since the others mostly follow from it.
fn discriminated(errors: &mut ErrorList, checked: UnionFields<'_>, discriminator: &str) {
    let UnionFields {
        object,
        union,
        fields,
        path,
    } = checked;
    let selected = selected(union, fields);
    let selects = |values: &[String]| values.iter().any(|value| value == selected);
    let at = |name: &str| Path::Field(path, name).field();
    let mut members = union.members.iter();
    if let Some((name, values)) =
        members.find(|(name, values)| is_set(object, fields, name) && !selects(values))
    {
        let when: Vec<String> = values.iter().map(|value| go_quote(value)).collect();
        let detail = format!(
            "may only be specified when `{discriminator}` is {}",
            when.join(" or ")
        );
        let value = fields.get(name).and_then(Value::as_str).unwrap_or_default();
        return errors.add(|| FieldError::invalid(&at(name), value, &detail));
    }
    let mut members = union.members.iter();
    if let Some((name, _)) =
        members.find(|(name, values)| !is_set(object, fields, name) && selects(values))
    {
        let detail = format!(
            "must be specified when `{discriminator}` is {}",
            go_quote(selected)
        );
        return errors.add(|| FieldError::invalid(&at(name), "", &detail));
    }
    let known = || union.members.iter().flat_map(|(_, values)| values);
    if selected.is_empty() {
        if !union.allow_none {
            errors.add(|| FieldError::required(&at(discriminator), ""));
        }
    } else if !union.closed && known().all(|value| value != selected) {
        let names: Vec<&str> = known().map(String::as_str).collect();
        let detail = format!("must be {}", names.join(" or "));
        errors.add(|| FieldError::invalid(&at(discriminator), selected, &detail));
    }
}

/// Reports several members that are set, or none if one is required.
pub(crate) fn one_of<'a>(
    members: impl Iterator<Item = &'a str>,
    set: &[&str],
    allow_none: bool,
    path: &Path<'_>,
) -> FieldError {
    let all = members
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if set.is_empty() {
        FieldError::invalid(&path.field(), "", &format!("must specify one of: {all}"))
    } else {
        let number = if allow_none { "at most" } else { "exactly" };
        FieldError::invalid(
            &path.field(),
            format!("{{{}}}", set.join(", ")),
            &format!("must specify {number} one of: {all}"),
        )
    }
}
