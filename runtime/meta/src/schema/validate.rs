//! Validates a document in one walk, for a create (no `old`) or an update.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::equality::{Identity, identity, same};
use super::node::{Choice, ListType, Node, Property, Rules, Types, is_set};
use super::path::Path;
use super::walk::Walk;
use super::{format, transition, union};
use crate::error::MAX_CAUSES;
use crate::field::{FieldError, FieldErrorKind, go_quote};
use crate::interrupt::is_interrupted;
use crate::names;
use crate::number;

/// The errors of a value, in the order of the schema.
pub(crate) fn validate(node: &Node, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut walk = Walk::default();
    walk.node(node, value, old, &Path::Root);
    walk.errors
}

impl Walk {
    fn node(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>) {
        let is_decided = self.probing && self.found > 0;
        if node.is_checked_apart || is_decided || is_interrupted() || old == Some(value) {
            return;
        }
        let before = self.found;
        if value.is_null() {
            if super::default::drops_null(node) {
                self.fail(|| wrong_type(node, value, path));
            }
            return;
        }
        if node.is_json_text && value.is_string() {
            return;
        }
        if !node.types.accepts(value) {
            self.fail(|| wrong_type(node, value, path));
            return;
        }
        self.values(&node.rules, value, path);
        match value {
            Value::Object(fields) => {
                self.object(node, fields, old.and_then(Value::as_object), path);
            }
            Value::Array(items) => self.array(node, items, old.and_then(Value::as_array), path),
            Value::String(text) => self.string(node, text, path),
            Value::Number(number) => self.number(node, number, path),
            Value::Null | Value::Bool(_) => {}
        }
        // The following checks are about the value as a whole; errors inside of it would only be repeated.
        if self.found == before {
            node.choices
                .iter()
                .for_each(|choice| self.choice(choice, value, path));
            if let Some(not) = &node.not
                && matches(not, value)
            {
                self.fail(|| {
                    FieldError::invalid(&path.field(), value, "must not be of the excluded form")
                });
            }
        }
        if self.found == before && !node.checks.is_empty() && !self.probing {
            let at = path.field();
            for error in node.checks.iter().flat_map(|check| check(value, &at)) {
                self.fail(|| error);
            }
        }
    }

    fn values(&mut self, rules: &Rules, value: &Value, path: &Path<'_>) {
        if !rules.values.is_empty()
            && !rules
                .values
                .iter()
                .any(|allowed| same(None, allowed, value))
        {
            self.fail(|| {
                let allowed: Vec<Cow<'_, str>> = rules.values.iter().map(text_of).collect();
                FieldError::not_supported(&path.field(), value, &allowed)
            });
        }
        if let Some(refused) = rules
            .not_equal
            .as_ref()
            .filter(|refused| same(None, refused, value))
        {
            let shown = refused
                .as_str()
                .map_or_else(|| refused.to_string(), go_quote);
            self.fail(|| {
                FieldError::invalid(
                    &path.field(),
                    value,
                    &format!("must not be equal to {shown}"),
                )
            });
        }
    }

    fn string(&mut self, node: &Node, text: &str, path: &Path<'_>) {
        let rules = &node.rules;
        if let Some(max) = rules
            .max_length
            .filter(|max| text.len() > *max && text.chars().count() > *max)
        {
            self.fail(|| FieldError {
                kind: FieldErrorKind::TooLong,
                path: path.field(),
                body: format!("Too long: may not be more than {max} characters"),
            });
        }
        if let Some(max) = rules.max_bytes.filter(|max| text.len() > *max) {
            self.fail(|| FieldError::too_long(&path.field(), max));
        }
        if let Some(min) = rules
            .min_length
            .filter(|min| text.len() < *min || text.chars().count() < *min)
        {
            self.fail(|| FieldError::too_short(&path.field(), min));
        }
        if let Some(min) = rules.min_bytes.filter(|min| text.len() < *min) {
            self.fail(|| FieldError {
                kind: FieldErrorKind::TooShort,
                path: path.field(),
                body: format!("Too short: must be at least {min} bytes"),
            });
        }
        let before = self.found;
        if let Some(name) = &node.format {
            for detail in format::problems(name, text) {
                self.fail(|| FieldError::invalid(&path.field(), text, &detail));
            }
        }
        // The pattern of a format repeats the format's check.
        let mismatch = rules
            .pattern
            .as_ref()
            .filter(|pattern| !pattern.is_match(text));
        if let Some(pattern) = mismatch.filter(|_| self.found == before) {
            self.fail(|| {
                let at = path.field();
                FieldError::invalid(
                    &at,
                    text,
                    &format!("{} in body should match '{}'", at.as_str(), pattern.text()),
                )
            });
        }
    }

    fn number(&mut self, node: &Node, value: &serde_json::Number, path: &Path<'_>) {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let rules = &node.rules;
        let mut bound = |limit: &Option<serde_json::Number>,
                         bad: &[std::cmp::Ordering],
                         text: &str| {
            if let Some(limit) = limit
                .as_ref()
                .filter(|limit| bad.contains(&number::compare(value, limit)))
            {
                self.fail(|| {
                    FieldError::invalid(&path.field(), value, &format!("must be {text} {limit}"))
                });
            }
        };
        bound(&rules.minimum, &[Less], "greater than or equal to");
        bound(&rules.exclusive_minimum, &[Less, Equal], "greater than");
        bound(&rules.maximum, &[Greater], "less than or equal to");
        bound(&rules.exclusive_maximum, &[Greater, Equal], "less than");
        if let Some(step) = rules
            .multiple_of
            .as_ref()
            .filter(|step| !number::is_multiple(value, step))
        {
            self.fail(|| {
                FieldError::invalid(
                    &path.field(),
                    value,
                    &format!("must be a multiple of {step}"),
                )
            });
        }
        let bounds = node
            .format
            .as_deref()
            .filter(|_| node.types == Types::INTEGER)
            .and_then(number::format_bounds);
        if let (Some((min, max)), Some(whole)) = (bounds, number::whole(value)) {
            if whole < min && rules.minimum.is_none() {
                self.fail(|| {
                    FieldError::invalid(
                        &path.field(),
                        value,
                        &format!("must be greater than or equal to {min}"),
                    )
                });
            }
            if whole > max && rules.maximum.is_none() {
                self.fail(|| {
                    FieldError::invalid(
                        &path.field(),
                        value,
                        &format!("must be less than or equal to {max}"),
                    )
                });
            }
        }
    }

    fn object(
        &mut self,
        node: &Node,
        fields: &Map<String, Value>,
        old: Option<&Map<String, Value>>,
        path: &Path<'_>,
    ) {
        if !self.size(
            &node.rules.min_properties,
            &node.rules.max_properties,
            fields.len(),
            path,
        ) {
            return;
        }
        for property in &node.properties {
            self.property(node, property, fields, old, path);
        }
        if node.keys.is_some() || node.additional.is_some() {
            for (name, value) in fields
                .iter()
                .filter(|(name, _)| node.property(name).is_none())
            {
                let old_value = old.and_then(|old| old.get(name));
                if let Some(keys) = node.keys.as_ref().filter(|_| old_value.is_none()) {
                    self.node(keys, &Value::String(name.clone()), None, path);
                }
                if let Some(additional) = &node.additional {
                    let at = path.step(node.is_map(), name);
                    self.transition(additional, Some(value), old_value, &at);
                    self.node(additional, value, old_value, &at);
                }
            }
        }
        if let Some(union) = &node.rules.union {
            let of_object = union::UnionFields {
                object: node,
                union,
                fields,
                path,
            };
            union::check(self, of_object, old);
        }
        if node.embedded_resource {
            for error in embedded_type_errors(fields, path) {
                self.fail(|| error);
            }
        }
    }

    fn property(
        &mut self,
        object: &Node,
        property: &Property,
        fields: &Map<String, Value>,
        old: Option<&Map<String, Value>>,
        path: &Path<'_>,
    ) {
        let Property {
            name,
            required,
            node,
        } = property;
        let at = Path::Field(path, name);
        let value = fields
            .get(name)
            .filter(|value| !value.is_null() || node.nullable);
        let old_value = old
            .and_then(|old| old.get(name))
            .filter(|value| !value.is_null());
        let unchanged = old.is_some() && value == old_value;
        if old.is_some() && !unchanged {
            self.transition(node, value, old_value, &at);
        }
        let rules = &node.rules;
        let missing = match value {
            None => *required || rules.required,
            Some(value) => rules.required && node.is_unset(value),
        };
        if missing {
            if !unchanged {
                self.fail(|| FieldError::required(&at.field(), ""));
            }
            return;
        }
        if rules.forbidden && !unchanged && value.is_some_and(|value| !node.is_unset(value)) {
            self.fail(|| FieldError::forbidden(&at.field(), "must not be set"));
            return;
        }
        if let Some(value) = value.filter(|_| !unchanged) {
            self.node(node, value, old_value, &at);
        }
        if !rules.requires.is_empty() || !rules.conflicts.is_empty() {
            self.siblings(object, property, fields, old, path);
        }
    }

    /// Checks the siblings that a field requires or excludes; on update only if one of them changed between set and
    /// unset.
    fn siblings(
        &mut self,
        object: &Node,
        property: &Property,
        fields: &Map<String, Value>,
        old: Option<&Map<String, Value>>,
        path: &Path<'_>,
    ) {
        let name = &property.name;
        if !is_set(object, fields, name) {
            return;
        }
        let as_before = |other: &str| {
            old.is_some_and(|old| {
                is_set(object, old, name)
                    && is_set(object, old, other) == is_set(object, fields, other)
            })
        };
        for other in property
            .node
            .rules
            .requires
            .iter()
            .filter(|other| !is_set(object, fields, other) && !as_before(other))
        {
            self.fail(|| {
                FieldError::required(
                    &Path::Field(path, other).field(),
                    &format!("must be set when {name} is set"),
                )
            });
        }
        for other in property
            .node
            .rules
            .conflicts
            .iter()
            .filter(|other| is_set(object, fields, other) && !as_before(other))
        {
            self.fail(|| {
                FieldError::forbidden(
                    &Path::Field(path, other).field(),
                    &format!("may not be set when {name} is set"),
                )
            });
        }
    }

    fn array(&mut self, node: &Node, items: &[Value], old: Option<&Vec<Value>>, path: &Path<'_>) {
        if !self.size(
            &node.rules.min_items,
            &node.rules.max_items,
            items.len(),
            path,
        ) {
            return;
        }
        let atomic = ListType::Atomic;
        let list_type = node.list_type.as_ref().unwrap_or(&atomic);
        self.twins(node, list_type, items, path);
        let Some(item_node) = &node.items else { return };
        let old_items = old.map(|old| transition::correlate(node, list_type, old));
        for (index, item) in items.iter().enumerate() {
            let at = Path::Index(path, index);
            let old_item = old_items
                .as_ref()
                .and_then(|old| transition::find(node, list_type, old, item));
            self.transition(item_node, Some(item), old_item, &at);
            self.node(item_node, item, old_item, &at);
        }
    }

    /// Checks that items of sets and keys of map lists are unique, and that keys are present.
    fn twins(&mut self, node: &Node, list_type: &ListType, items: &[Value], path: &Path<'_>) {
        // Owners without a uid are refused with the rest of the metadata.
        if let ListType::Map(keys) = list_type
            && !node.twins_allowed
        {
            let fields = items
                .iter()
                .enumerate()
                .filter_map(|(index, item)| Some((index, item.as_object()?)));
            for (index, fields) in fields {
                let declared = |key: &str| {
                    node.items
                        .as_ref()
                        .and_then(|items| items.property(key))
                        .is_some_and(|p| p.required)
                };
                // A missing required field is reported where the item itself is validated.
                for key in keys
                    .iter()
                    .filter(|key| fields.get(*key).is_none_or(Value::is_null) && !declared(key))
                {
                    self.fail(|| {
                        FieldError::required(
                            &Path::Field(&Path::Index(path, index), key).field(),
                            "",
                        )
                    });
                }
            }
        }
        let by_identity = !node.twins_allowed && *list_type != ListType::Atomic;
        if items.len() < 2 || !(by_identity || node.rules.unique) {
            return;
        }
        // Items without another identity are identified by their value.
        let told_by = if by_identity {
            list_type
        } else {
            &ListType::Set
        };
        let mut seen: HashSet<Identity<'_>> = HashSet::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            if !seen.insert(identity(node, told_by, item)) {
                self.fail(|| {
                    FieldError::duplicate(
                        &Path::Index(path, index).field(),
                        shown_identity(list_type, item),
                    )
                });
            }
        }
    }

    /// Checks the number of entries; returns whether it is small enough to validate each of them.
    fn size(
        &mut self,
        min: &Option<usize>,
        max: &Option<usize>,
        actual: usize,
        path: &Path<'_>,
    ) -> bool {
        if let Some(max) = max.filter(|max| actual > *max) {
            self.fail(|| FieldError::too_many(&path.field(), actual, max));
            return false;
        }
        if let Some(min) = min.filter(|min| actual < *min) {
            self.fail(|| FieldError::too_few(&path.field(), actual, min));
        }
        true
    }

    fn transition(
        &mut self,
        node: &Node,
        new: Option<&Value>,
        old: Option<&Value>,
        path: &Path<'_>,
    ) {
        if !node.update.is_empty() {
            transition::check(self, node, new, old, path);
        }
    }

    fn choice(&mut self, choice: &Choice, value: &Value, path: &Path<'_>) {
        let matching = choice
            .branches
            .iter()
            .filter(|branch| matches(branch, value))
            .count();
        if matching == 1 || (matching > 1 && !choice.exactly_one) {
            return;
        }
        // The errors would not be returned, so the branch need not be found.
        if self.probing || self.errors.len() >= MAX_CAUSES {
            self.found += 1;
            return;
        }
        if let Some(members) = members(choice, value) {
            let set: Vec<&str> = members
                .iter()
                .copied()
                .filter(|name| value.get(name).is_some_and(|v| !v.is_null()))
                .collect();
            if set.len() != 1 {
                self.fail(|| union::one_of(members.iter().copied(), &set, false, path));
                return;
            }
        }
        if matching > 1 {
            self.fail(|| {
                FieldError::invalid(
                    &path.field(),
                    value,
                    "must be of exactly one of the allowed forms",
                )
            });
            return;
        }
        match meant(choice, value) {
            Some(branch) => self.node(branch, value, None, path),
            None => self.fail(|| {
                FieldError::invalid(&path.field(), value, "must be of one of the allowed forms")
            }),
        }
    }
}

/// The errors of the type of an embedded object, which must have apiVersion and kind; its metadata is optional.
pub(super) fn embedded_type_errors(
    fields: &Map<String, Value>,
    path: &Path<'_>,
) -> Vec<FieldError> {
    let api_version = |text: &str| {
        if text.split('/').count() > 2 {
            Some(format!("unexpected GroupVersion string: {text}"))
        } else {
            None
        }
    };
    let kind = |text: &str| {
        let problems = names::dns1035_label(&text.to_ascii_lowercase());
        let problems = (!problems.is_empty()).then(|| problems.join(","));
        problems
            .map(|problems| format!("may have mixed case, but should otherwise match: {problems}"))
    };
    let mut errors = Vec::new();
    for name in ["apiVersion", "kind"] {
        let check = |text: &str| match name {
            "kind" => kind(text),
            _ => api_version(text),
        };
        let at = || Path::Field(path, name).field();
        match fields.get(name) {
            None => errors.push(FieldError::required(&at(), "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(
                    &at(),
                    text.as_str(),
                    "must not be empty",
                ));
            }
            Some(Value::String(text)) => {
                if let Some(problem) = check(text) {
                    errors.push(FieldError::invalid(&at(), text.as_str(), &problem));
                }
            }
            // A value of another type is reported elsewhere.
            Some(_) => {}
        }
    }
    errors
}

/// Whether a value matches a branch.
fn matches(branch: &Node, value: &Value) -> bool {
    let mut walk = Walk {
        probing: true,
        ..Walk::default()
    };
    walk.node(branch, value, None, &Path::Root);
    walk.found == 0
}

/// The fields of an externally tagged enum, in which every branch for an object requires one field.
fn members<'a>(choice: &'a Choice, value: &Value) -> Option<Vec<&'a str>> {
    if !value.is_object() {
        return None;
    }
    let mut names = Vec::with_capacity(choice.branches.len());
    for branch in choice
        .branches
        .iter()
        .filter(|branch| branch.types.accepts(value))
    {
        let mut required = branch
            .properties
            .iter()
            .filter(|property| property.required);
        match (required.next(), required.next()) {
            (Some(only), None)
                if branch.properties.len() == 1 && !names.contains(&only.name.as_str()) =>
            {
                names.push(only.name.as_str());
            }
            _ => return None,
        }
    }
    Some(names)
}

/// The branch whose errors are reported: the one selected by the tag, the only one of the value's type, or else the
/// one with the fewest errors.
fn meant<'a>(choice: &'a Choice, value: &Value) -> Option<&'a Node> {
    let tagged = |branch: &&Node| {
        let mut tags = branch
            .properties
            .iter()
            .filter(|p| p.required && !p.node.rules.values.is_empty())
            .peekable();
        tags.peek().is_some()
            && tags.all(|tag| {
                value
                    .get(&tag.name)
                    .is_some_and(|v| tag.node.rules.values.contains(v))
            })
    };
    let mut by_tag = choice.branches.iter().filter(tagged);
    if let (Some(only), None) = (by_tag.next(), by_tag.next()) {
        return Some(only);
    }
    let of_type = choice
        .branches
        .iter()
        .filter(|branch| branch.types.accepts(value));
    of_type.min_by_key(|branch| {
        let mut walk = Walk::default();
        walk.node(branch, value, None, &Path::Root);
        walk.found
    })
}

fn text_of(value: &Value) -> Cow<'_, str> {
    value
        .as_str()
        .map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}

/// The part of an item that identifies a duplicate.
fn shown_identity(list_type: &ListType, item: &Value) -> Value {
    match (list_type, item) {
        (ListType::Map(keys), Value::Object(fields)) => Value::Object(
            keys.iter()
                .filter_map(|key| Some((key.clone(), fields.get(key)?.clone())))
                .collect(),
        ),
        _ => item.clone(),
    }
}

/// The type error of CRDs, with the type of the value, not the value.
fn wrong_type(node: &Node, value: &Value, path: &Path<'_>) -> FieldError {
    let at = path.field();
    let actual = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let expected = node.types.names().join(" or ");
    FieldError::type_invalid(
        &at,
        actual,
        &format!(
            "{} in body must be of type {expected}: {}",
            at.as_str(),
            go_quote(actual)
        ),
    )
}
