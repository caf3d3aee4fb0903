//! Validates a custom resource as kube-openapi does, with its texts, and tolerates errors of values that an update does
//! not change.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::super::node::{ListType, Node, Types};
use super::super::path::Path;
use super::super::transition;
use super::outcome::{Outcome, invalid_name, unplaced};
use super::{embedded, formats, lists, numbers};
use crate::field::{FieldError, FieldPath, go_quote};
use crate::interrupt::is_interrupted;

/// The errors of an object, or of an update of it: types and values, then embedded objects, then the identity of list
/// items.
pub(crate) fn validate(root: &Node, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut out = of_types(root, new, old);
    duplicates(root, new, old, &mut out);
    out.into_errors()
}

/// The errors of an update of one field of an object, such as its status: those of the types and values of the field, in
/// whose texts paths begin at the field, then those of the identity of list items of the whole object.
pub(crate) fn validate_field(
    root: &Node,
    field: &str,
    new: &Value,
    old: &Value,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let (Some(property), Some(value)) = (root.property(field), new.get(field)) {
        let old = old.get(field).filter(|old| !old.is_null());
        let of_field = checked(&property.node, value, old, &Path::Root, true);
        errors = of_field.into_errors();
        let place = FieldPath::new(field);
        for error in &mut errors {
            error.path = below(&place, &error.path);
        }
    }
    let mut out = Outcome::default();
    duplicates(root, new, Some(old), &mut out);
    errors.extend(out.into_errors());
    errors
}

/// The path of an error in a value that is validated by itself, such as a default or the status.
pub(super) fn below(place: &FieldPath, path: &FieldPath) -> FieldPath {
    match path.as_str() {
        "" => place.clone(),
        path => place.child(path.strip_prefix('.').unwrap_or(path)),
    }
}

/// Checks the identity of list items. Lists with duplicates may be changed until they have none.
fn duplicates(root: &Node, new: &Value, old: Option<&Value>, out: &mut Outcome) {
    let had_duplicates = old.is_some_and(|old| {
        let mut of_old = Outcome::default();
        lists::check(root, old, &Path::Root, &mut of_old);
        of_old.has_errors()
    });
    if !had_duplicates {
        lists::check(root, new, &Path::Root, out);
    }
}

/// The errors of types and values, and of embedded objects.
fn of_types(node: &Node, new: &Value, old: Option<&Value>) -> Outcome {
    let mut out = checked(node, new, old, &Path::Root, true);
    embedded::check(node, new, &Path::Root, &mut out);
    out
}

/// The errors of a value by itself, as that of a default.
pub(super) fn value(node: &Node, value: &Value) -> Vec<FieldError> {
    of_types(node, value, None).into_errors()
}

/// Validates a value; if it is unchanged, errors are tolerated. The root's `apiVersion` and `kind` never are.
fn checked(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    is_root: bool,
) -> Outcome {
    let out = value_of(node, value, old, path, is_root);
    match old {
        Some(old) if out.has_errors() && is_unchanged(node, value, old) => {
            Outcome::matching(out.matches)
        }
        _ => out,
    }
}

/// Whether a value is equal to the old one, as kube-apiserver compares them: the order of the items of a list of type map is ignored,
/// and an object with a field that has no schema is never equal.
fn is_unchanged(node: &Node, new: &Value, old: &Value) -> bool {
    if is_interrupted() {
        return false;
    }
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, new)| {
                    let below = compared_by(node, name).zip(old.get(name));
                    below.is_some_and(|(node, old)| is_unchanged(node, new, old))
                })
        }
        (Value::Array(new), Value::Array(old)) => {
            let list_type = node.list_type.as_ref();
            let (Some(list_type @ ListType::Map(_)), Some(items)) = (list_type, &node.items) else {
                return new == old;
            };
            let old_items = transition::correlate(node, list_type, old);
            new.len() == old.len()
                && new.iter().all(|item| {
                    transition::find(node, list_type, &old_items, item)
                        .is_some_and(|old| is_unchanged(items, item, old))
                })
        }
        _ => new == old,
    }
}

/// The schema of a field; `None` for one that the definition does not describe, such as the metadata of most.
fn compared_by<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    let mut declared = node.custom.iter().flat_map(|custom| &custom.declared);
    if let Some(declared) = declared.find(|property| property.name == name) {
        return Some(&declared.node);
    }
    let found = super::super::node::child(Some(node), name)?;
    (!found.dialect.is_typed && !found.is_closed()).then_some(found)
}

/// Validates a value. Nodes without custom rules are those of the metadata, which is validated elsewhere.
fn value_of(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    is_root: bool,
) -> Outcome {
    let mut out = Outcome::default();
    if node.dialect.is_typed || is_interrupted() {
        return out;
    }
    let at = || path.field();
    if let Some(error) = type_error(node, value, path) {
        out.add(|| error);
    } else if !node.types.is_any() || node.format.is_some() {
        out.matches += 1;
    }
    if value.is_null() {
        allowed(node, value, path, &mut out);
        return out;
    }
    out.matches += applied_rules(node, value);
    if node.custom.is_some() {
        junctors(node, value, path, &mut out);
    }
    match value {
        Value::String(text) => string(node, text, path, &mut out),
        Value::Number(number) => {
            let at = at();
            numbers::check(node, number, at.as_str(), &at, &mut out);
        }
        Value::Array(items) => {
            array(node, items, old, path, &mut out);
        }
        _ => {}
    }
    allowed(node, value, path, &mut out);
    if let Value::Object(fields) = value {
        let old = OldFields { old, is_root };
        object(node, fields, &old, path, &mut out);
    }
    out
}

/// The number of rules of kube-openapi that are applied to a value, by which it measures how much a value matches: those
/// of the alternatives, of the enum and of the schema itself, of the type, the kind of value, and the format.
fn applied_rules(node: &Node, value: &Value) -> usize {
    let has_type = !node.types.is_any() || node.format.is_some();
    let has_format = value.is_string() && node.format.is_some();
    let of_kind = match value {
        Value::Null | Value::Bool(_) => 0,
        Value::String(_) | Value::Object(_) => 1,
        Value::Number(_) | Value::Array(_) => 2,
    };
    4 + of_kind + usize::from(has_type) + usize::from(has_format)
}

/// The type of a value in kube-openapi's texts, and its format.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(number) if numbers::has_integer_syntax(number) => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
    }
}

fn type_error(node: &Node, value: &Value, path: &Path<'_>) -> Option<FieldError> {
    let types = node.types;
    if types.is_any() || (value.is_null() && node.nullable) {
        return None;
    }
    let accepted = match value {
        Value::Null => false,
        Value::Bool(_) => types.takes(Types::BOOLEAN),
        Value::String(_) => types.takes(Types::STRING),
        Value::Array(_) => types.takes(Types::ARRAY) || is_text_with_format(node),
        Value::Object(_) => types.takes(Types::OBJECT),
        Value::Number(number) => {
            let is_integer = numbers::integer(number).is_some();
            types.takes(Types::NUMBER) || (is_integer && types.takes(Types::INTEGER))
        }
    };
    if accepted {
        return None;
    }
    let (json_type, format) = type_of(value);
    let is_plain = matches!(value, Value::String(_) | Value::Array(_) | Value::Null);
    let (expected, found) = match &node.format {
        Some(expected) if !is_plain => (expected.clone(), format),
        _ => (expected(types), json_type),
    };
    let at = path.field();
    let detail = format!(
        "{} in body must be of type {expected}: {}",
        at.as_str(),
        go_quote(found)
    );
    Some(FieldError::type_invalid(&at, found, &detail))
}

/// Whether it is a text with a format: kube-openapi leaves its values and lists to the check of the format, which looks at texts
/// alone, so that a list is valid.
fn is_text_with_format(node: &Node) -> bool {
    node.format.is_some() && node.types == Types::STRING
}

/// The names of types, in the order of kube-openapi's texts.
fn expected(types: Types) -> String {
    if types == Types::INTEGER.union(Types::STRING) {
        return "integer,string".to_owned();
    }
    types.names().join(",")
}

fn allowed(node: &Node, value: &Value, path: &Path<'_>, out: &mut Outcome) {
    let values = &node.rules.values;
    if values.is_empty() || node.rules.enum_index.contain(values, value) {
        return;
    }
    out.add(|| {
        let texts = values.iter().map(|value| {
            let text = value.as_str().map(Cow::Borrowed);
            text.unwrap_or_else(|| Cow::Owned(value.to_string()))
        });
        FieldError::not_supported(&path.field(), numbers::shown_value(value), texts)
    });
}

fn string(node: &Node, text: &str, path: &Path<'_>, out: &mut Outcome) {
    let rules = &node.rules;
    let at = || path.field();
    let is_over = |max: &usize| text.len() > *max && text.chars().count() > *max;
    let is_under = |min: &usize| text.len() < *min || text.chars().count() < *min;
    // Only the first of these is reported.
    if let Some(max) = rules.max_length.filter(is_over) {
        out.add(|| FieldError::too_long(&at(), max));
    } else if let Some(min) = rules.min_length.filter(is_under) {
        let detail = format!("should be at least {min} chars long");
        out.add(|| invalid_name(&at(), text.into(), at().as_str(), &detail));
    } else if let Some(pattern) = rules.pattern.as_ref().filter(|it| !it.is_match(text)) {
        let detail = format!("should match '{}'", pattern.text());
        out.add(|| invalid_name(&at(), text.into(), at().as_str(), &detail));
    }
    if let Some(format) = &node.format
        && !formats::is_valid(format, text)
    {
        out.add(|| {
            let name = at();
            let name = name.as_str();
            let detail = format!(
                "{name} in body must be of type {format}: {}",
                go_quote(text)
            );
            FieldError::type_invalid(&at(), text, &detail)
        });
    }
}

fn array(node: &Node, items: &[Value], old: Option<&Value>, path: &Path<'_>, out: &mut Outcome) {
    let rules = &node.rules;
    if let Some(max) = rules.max_items.filter(|max| items.len() > *max) {
        out.add(|| FieldError::too_many(&path.field(), items.len(), max));
    }
    if let Some(of_items) = node.items.as_deref() {
        let old = old.and_then(Value::as_array);
        // Items of other lists have no identity, so none is unchanged in a list that has changed.
        let by_keys = match (&node.list_type, old) {
            (Some(list_type @ ListType::Map(_)), Some(old)) => {
                Some((list_type, transition::correlate(node, list_type, old)))
            }
            _ => None,
        };
        for (index, item) in items.iter().enumerate() {
            let old_item = by_keys
                .as_ref()
                .and_then(|(list_type, old)| transition::find(node, list_type, old, item));
            // A null is no value that could be unchanged.
            let old_item = old_item.filter(|old| !old.is_null());
            let at = Path::Index(path, index);
            out.merge(checked(of_items, item, old_item, &at, false));
        }
    }
    if let Some(min) = rules.min_items.filter(|min| items.len() < *min) {
        let detail = format!("should have at least {min} items");
        out.add(|| {
            let at = path.field();
            invalid_name(&at, items.len().into(), at.as_str(), &detail)
        });
    }
}

/// The fields of the present object that excuse those of the new one; at the root not its type.
struct OldFields<'a> {
    old: Option<&'a Value>,
    is_root: bool,
}

impl<'a> OldFields<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        let is_type = self.is_root && matches!(name, "apiVersion" | "kind");
        let old = self.old.filter(|_| !is_type)?;
        old.as_object()?.get(name)
    }
}

fn object(
    node: &Node,
    fields: &Map<String, Value>,
    old: &OldFields<'_>,
    path: &Path<'_>,
    out: &mut Outcome,
) {
    let rules = &node.rules;
    let custom = node.custom.as_deref();
    if let Some(min) = rules.min_properties.filter(|min| fields.len() < *min) {
        let detail = format!("should have at least {min} properties");
        out.add(|| {
            let at = path.field();
            invalid_name(&at, fields.len().into(), at.as_str(), &detail)
        });
    }
    if let Some(max) = rules.max_properties.filter(|max| fields.len() > *max) {
        out.add(|| FieldError::too_many(&path.field(), fields.len(), max));
    }
    let refuses_unknown = custom.is_some_and(|custom| custom.refuses_unknown);
    if let Some(values) = node.additional.as_deref() {
        for (name, value) in fields {
            if node.property(name).is_some() {
                continue;
            }
            // kube-openapi joins the paths of such values with a dot, also that of the validated value, which is empty.
            let below_root = matches!(path, Path::Root).then(|| format!(".{name}"));
            let at = Path::Field(path, below_root.as_deref().unwrap_or(name));
            if refuses_unknown {
                let parent = path.field();
                let detail = format!("{} in body is a forbidden property", at.field().as_str());
                out.add(|| FieldError::invalid(&parent, name.as_str(), &detail));
                continue;
            }
            out.merge(checked(values, value, old.get(name), &at, false));
        }
    }
    for property in &node.properties {
        if let Some(value) = fields.get(&property.name) {
            let at = Path::Field(path, &property.name);
            let old = old.get(&property.name);
            out.merge(checked(&property.node, value, old, &at, false));
        }
    }
    for property in custom.iter().flat_map(|custom| &custom.declared) {
        if let Some(value) = fields.get(&property.name) {
            let at = Path::Field(path, &property.name);
            let old = old.get(&property.name);
            out.merge(checked(&property.node, value, old, &at, false));
        }
    }
    let required = node
        .properties
        .iter()
        .filter(|property| property.required)
        .map(|property| &property.name);
    let undescribed = custom.iter().flat_map(|custom| &custom.required);
    for name in required.chain(undescribed) {
        if !fields.contains_key(name) {
            out.add(|| FieldError::required(&Path::Field(path, name).field(), ""));
        }
    }
}

/// Checks `allOf`, `anyOf`, `oneOf` and `not`. In them no value counts as unchanged.
fn junctors(node: &Node, value: &Value, path: &Path<'_>, out: &mut Outcome) {
    let Some(custom) = node.custom.as_deref() else {
        return;
    };
    let name = || go_quote(path.field().as_str());
    let judged = |branch: &Node| value_of(branch, value, None, path, false);
    let best = |failed: Option<Outcome>, other: Outcome| match failed {
        Some(best) if best.matches >= other.matches => Some(best),
        _ => Some(other),
    };
    if !custom.any_of.is_empty() {
        let mut failed: Option<Outcome> = None;
        let mut matching = None;
        for outcome in custom.any_of.iter().map(judged) {
            if !outcome.has_errors() {
                matching = Some(outcome);
                break;
            }
            failed = best(failed, outcome);
        }
        match matching {
            Some(matching) => out.merge(matching),
            None => {
                out.add(|| {
                    let detail = format!("{} must validate at least one schema (anyOf)", name());
                    unplaced(&detail)
                });
                failed.into_iter().for_each(|failed| out.merge(failed));
            }
        }
    }
    if !custom.one_of.is_empty() {
        let mut failed: Option<Outcome> = None;
        let mut first = None;
        let mut valid = 0;
        for outcome in custom.one_of.iter().map(judged) {
            if !outcome.has_errors() {
                valid += 1;
                first.get_or_insert(outcome);
            } else if valid == 0 {
                failed = best(failed, outcome);
            }
        }
        match (valid, first) {
            (1, Some(first)) => out.merge(first),
            _ => {
                out.add(|| {
                    let found = match valid {
                        0 => "Found none valid".to_owned(),
                        valid => format!("Found {valid} valid alternatives"),
                    };
                    let detail = format!(
                        "{} must validate one and only one schema (oneOf). {found}",
                        name()
                    );
                    unplaced(&detail)
                });
                failed
                    .filter(|_| valid == 0)
                    .into_iter()
                    .for_each(|failed| out.merge(failed));
            }
        }
    }
    let mut valid = 0;
    for outcome in custom.all_of.iter().map(judged) {
        valid += usize::from(!outcome.has_errors());
        out.merge(outcome);
    }
    if valid < custom.all_of.len() {
        out.add(|| {
            let none = if valid == 0 { ". None validated" } else { "" };
            unplaced(&format!(
                "{} must validate all the schemas (allOf){none}",
                name()
            ))
        });
    }
    if let Some(not) = &custom.not
        && !judged(not).has_errors()
    {
        out.add(|| unplaced(&format!("{} must not validate the schema (not)", name())));
    }
}
