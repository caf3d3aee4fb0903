//! Validates a document in one walk, for a create (no `old`) or an update.
//!
//! Every keyword is checked here, or in `numbers.rs`, `strings.rs` and `twins.rs`, once for all schemas; what differs is an
//! answer of the [`ValidationDialect`].

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::embedded_type::embedded_type_errors;
use super::equality::same;
use super::error_list::ErrorList;
use super::node::{CustomRules, ListType, Node, Property, Types, is_set};
use super::texts::unplaced;
use super::transition::is_unchanged;
use super::validation_dialect::ValidationDialect;
use super::walk::Walk;
use super::walk_path::Path;
use super::{format, go_numbers, own_rules, transition, union};
use crate::field::FieldError;
use crate::interrupt::is_interrupted;

/// The validation of compiled kinds.
pub(super) static COMPILED: ValidationDialect = ValidationDialect {
    validate,
    validate_field: |root, _, new, old| validate(root, new, Some(old)),
    is_in_enum: |rules, value| {
        rules
            .values
            .iter()
            .any(|allowed| same(None, allowed, value))
    },
    format_problems: format::problems,
    has_openapi_texts: false,
    is_in_openapi_order: false,
    stops_early: true,
    reports_first_of_text: false,
    judges_nulls: false,
    leaves_typed: false,
    leaves_lists_to_formats: false,
    has_go_numbers: false,
    tolerates_unchanged: false,
    reports_best_branch: false,
    has_passes: false,
    dots_entries: false,
};

/// The errors of a value of a compiled kind, in the order of the schema.
pub(crate) fn validate(node: &Node, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    judge(&COMPILED, node, value, old).into_errors()
}

/// The errors of a value, without those of later passes.
pub(super) fn judge(
    dialect: &'static ValidationDialect,
    node: &Node,
    value: &Value,
    old: Option<&Value>,
) -> ErrorList {
    let mut walk = Walk::new(dialect, ErrorList::default());
    walk.value(node, value, old, &Path::Root);
    walk.errors
}

/// Alternatives for a value: those of `anyOf`, or of `oneOf`, of which exactly one has to match.
#[derive(Clone, Copy)]
struct Alternatives<'a> {
    branches: &'a [Node],
    exactly_one: bool,
}

/// The fields of an object, and those that it had before an update.
#[derive(Clone, Copy)]
struct Fields<'a> {
    new: &'a Map<String, Value>,
    old: Option<&'a Map<String, Value>>,
}

impl Walk {
    /// Judges a value.
    fn value(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>) {
        let is_left_out =
            node.is_checked_apart || (self.dialect.leaves_typed && node.dialect.is_typed);
        let is_decided = self.errors.counts_only() && self.errors.found() > 0;
        if is_left_out || is_decided || is_interrupted() {
            return;
        }
        if !self.dialect.tolerates_unchanged {
            if old != Some(value) {
                self.changed(node, value, old, path);
            }
            return;
        }
        let before = self.errors.mark();
        self.changed(node, value, old, path);
        if let Some(old) = old
            && self.errors.has_since(before)
            && is_unchanged(node, value, old)
        {
            self.errors.rewind(before);
        }
    }

    /// Judges a value that is not left out.
    fn changed(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>) {
        let dialect = self.dialect;
        let before = self.errors.mark();
        if node.is_json_text && value.is_string() {
            return;
        }
        let is_of_type = self.accepts(node, value);
        if dialect.reports_best_branch {
            self.matches += applied_rules(node, value, is_of_type);
        }
        if !is_of_type {
            self.fail(|| dialect.wrong_type(node, value, path));
            if dialect.stops_early {
                return;
            }
        }
        if value.is_null() {
            if dialect.judges_nulls {
                self.allowed(node, value, path);
            }
            return;
        }
        if dialect.is_in_openapi_order {
            self.junctors(node, value, path);
        } else {
            self.allowed(node, value, path);
        }
        match value {
            Value::Array(items) => self.array(node, items, old.and_then(Value::as_array), path),
            Value::String(text) => self.string(node, text, path),
            Value::Number(number) => self.number(node, number, path),
            Value::Object(_) | Value::Null | Value::Bool(_) => {}
        }
        if dialect.is_in_openapi_order {
            self.allowed(node, value, path);
        }
        if let Value::Object(new) = value {
            let old = old.and_then(Value::as_object);
            self.object(node, Fields { new, old }, path);
        }
        // The following checks are about the value as a whole; errors inside of it would only be repeated.
        if !dialect.is_in_openapi_order && !self.errors.has_since(before) {
            self.junctors(node, value, path);
        }
        if !node.checks.is_empty() && !self.errors.has_since(before) && !self.errors.counts_only() {
            let at = path.field();
            for error in node.checks.iter().flat_map(|check| check(value, &at)) {
                self.fail(|| error);
            }
        }
    }

    /// Whether a value has one of the types of a node.
    fn accepts(&self, node: &Node, value: &Value) -> bool {
        let (dialect, types) = (self.dialect, node.types);
        match value {
            Value::Null if dialect.judges_nulls => types.is_any() || node.nullable,
            Value::Null => !super::default::drops_null(node),
            Value::Number(number) if dialect.has_go_numbers => {
                let is_integer = || go_numbers::integer(number).is_some();
                types.takes(Types::NUMBER) || (types.takes(Types::INTEGER) && is_integer())
            }
            Value::Array(_) if dialect.leaves_lists_to_formats => {
                types.accepts(value) || (node.format.is_some() && types == Types::STRING)
            }
            _ => types.accepts(value),
        }
    }

    /// Checks the values that are allowed, and the rules about the value as a whole.
    fn allowed(&mut self, node: &Node, value: &Value, path: &Path<'_>) {
        let rules = &node.rules;
        if !rules.values.is_empty() && !(self.dialect.is_in_enum)(rules, value) {
            let has_go_numbers = self.dialect.has_go_numbers;
            self.fail(|| {
                let allowed = rules.values.iter().map(text_of);
                let shown = if has_go_numbers {
                    go_numbers::shown_value(value)
                } else {
                    Cow::Borrowed(value)
                };
                FieldError::not_supported(&path.field(), shown, allowed)
            });
        }
        for detail in own_rules::refusals(rules, value) {
            self.fail(|| FieldError::invalid(&path.field(), value, &detail));
        }
    }

    fn object(&mut self, node: &Node, fields: Fields<'_>, path: &Path<'_>) {
        let (rules, count) = (&node.rules, fields.new.len());
        if self.dialect.is_in_openapi_order {
            self.too_few(rules.min_properties, count, "properties", path);
            self.too_many(rules.max_properties, count, path);
            self.entries(node, fields, path);
            self.properties(node, fields, path);
            self.missing(node, fields.new, path);
        } else {
            if self.too_many(rules.max_properties, count, path) && self.dialect.stops_early {
                return;
            }
            self.too_few(rules.min_properties, count, "properties", path);
            self.properties(node, fields, path);
            self.entries(node, fields, path);
        }
        if let Some(union) = &rules.union {
            let of_object = union::UnionFields {
                object: node,
                union,
                fields: fields.new,
                path,
            };
            union::check(&mut self.errors, of_object, fields.old);
        }
        if node.embedded_resource && !self.dialect.has_passes {
            for error in embedded_type_errors(fields.new, path) {
                self.fail(|| error);
            }
        }
    }

    fn properties(&mut self, node: &Node, fields: Fields<'_>, path: &Path<'_>) {
        let declared = node.custom.iter().flat_map(|custom| &custom.declared);
        for property in node.properties.iter().chain(declared) {
            self.property(node, property, fields, path);
        }
    }

    /// The value of a field before an update. Where errors are tolerated, those of the type of an object are not.
    fn old_value<'a>(&self, fields: Fields<'a>, name: &str, path: &Path<'_>) -> Option<&'a Value> {
        let is_never_old = self.dialect.tolerates_unchanged
            && matches!(path, Path::Root)
            && matches!(name, "apiVersion" | "kind");
        fields.old.filter(|_| !is_never_old)?.get(name)
    }

    fn property(
        &mut self,
        object: &Node,
        property: &Property,
        fields: Fields<'_>,
        path: &Path<'_>,
    ) {
        let dialect = self.dialect;
        let Property {
            name,
            required,
            node,
        } = property;
        let at = Path::Field(path, name);
        let is_value = |value: &&Value| dialect.judges_nulls || !value.is_null();
        let value = fields.new.get(name);
        let value = value.filter(|value| is_value(value) || node.nullable);
        let old_value = self.old_value(fields, name, path).filter(is_value);
        let is_updated = fields.old.is_some();
        let unchanged = is_updated && !dialect.tolerates_unchanged && value == old_value;
        if is_updated && !unchanged {
            self.transition(node, value, old_value, &at);
        }
        let rules = &node.rules;
        let missing = match value {
            None => (*required && !dialect.is_in_openapi_order) || rules.required,
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
            self.value(node, value, old_value, &at);
        }
        if !rules.requires.is_empty() || !rules.conflicts.is_empty() {
            self.siblings(object, property, fields, path);
        }
    }

    /// Checks that required fields are present, after all others.
    fn missing(&mut self, node: &Node, fields: &Map<String, Value>, path: &Path<'_>) {
        let required = node.properties.iter().filter(|property| property.required);
        let required = required.map(|property| &property.name);
        let undescribed = node.custom.iter().flat_map(|custom| &custom.required);
        for name in required.chain(undescribed) {
            if !fields.contains_key(name) {
                self.fail(|| FieldError::required(&Path::Field(path, name).field(), ""));
            }
        }
    }

    /// Checks the keys that are not properties, and their values.
    fn entries(&mut self, node: &Node, fields: Fields<'_>, path: &Path<'_>) {
        if node.keys.is_none() && node.additional.is_none() {
            return;
        }
        let custom = node.custom.as_deref();
        let refuses_unknown = custom.is_some_and(|custom| custom.refuses_unknown);
        let dots_entries = self.dialect.dots_entries;
        let entries = fields.new.iter();
        for (name, value) in entries.filter(|(name, _)| node.property(name).is_none()) {
            let below_root =
                (dots_entries && matches!(path, Path::Root)).then(|| format!(".{name}"));
            let at = if dots_entries {
                Path::Field(path, below_root.as_deref().unwrap_or(name))
            } else {
                path.step(node.is_map(), name)
            };
            if refuses_unknown {
                self.fail(|| {
                    let detail = format!("{} in body is a forbidden property", at.field().as_str());
                    FieldError::invalid(&path.field(), name.as_str(), &detail)
                });
                continue;
            }
            let old_value = self.old_value(fields, name, path);
            if let Some(keys) = node.keys.as_ref().filter(|_| old_value.is_none()) {
                self.value(keys, &Value::String(name.clone()), None, path);
            }
            if let Some(additional) = &node.additional {
                self.transition(additional, Some(value), old_value, &at);
                self.value(additional, value, old_value, &at);
            }
        }
    }

    /// Checks the siblings that a field requires or excludes; on update only if one of them changed between set and
    /// unset.
    fn siblings(
        &mut self,
        object: &Node,
        property: &Property,
        fields: Fields<'_>,
        path: &Path<'_>,
    ) {
        let name = &property.name;
        let Fields { new: fields, old } = fields;
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
        let (rules, dialect) = (&node.rules, self.dialect);
        let is_over = self.too_many(rules.max_items, items.len(), path);
        if dialect.stops_early && is_over {
            return;
        }
        if !dialect.is_in_openapi_order {
            self.too_few(rules.min_items, items.len(), "items", path);
        }
        let atomic = ListType::Atomic;
        let list_type = node.list_type.as_ref().unwrap_or(&atomic);
        if !dialect.has_passes {
            self.twins(node, list_type, items, path);
        }
        if let Some(of_items) = &node.items {
            // Tolerated are errors of items with keys: others have no identity, so none is unchanged in a list that has changed.
            let has_identity =
                !dialect.tolerates_unchanged || matches!(list_type, ListType::Map(_));
            let old_items = old.filter(|_| has_identity);
            let old_items = old_items.map(|old| transition::correlate(node, list_type, old));
            for (index, item) in items.iter().enumerate() {
                let at = Path::Index(path, index);
                let old_item = old_items
                    .as_ref()
                    .and_then(|old| transition::find(node, list_type, old, item))
                    // A null that is judged is no value that could be unchanged.
                    .filter(|old| !(dialect.judges_nulls && old.is_null()));
                self.transition(of_items, Some(item), old_item, &at);
                self.value(of_items, item, old_item, &at);
            }
        }
        if dialect.is_in_openapi_order {
            self.too_few(rules.min_items, items.len(), "items", path);
        }
    }

    /// Checks that there are not too many entries; returns whether there are.
    fn too_many(&mut self, max: Option<usize>, actual: usize, path: &Path<'_>) -> bool {
        let exceeded = max.filter(|max| actual > *max);
        if let Some(max) = exceeded {
            self.fail(|| FieldError::too_many(&path.field(), actual, max));
        }
        exceeded.is_some()
    }

    /// Checks that there are enough entries: `items` or `properties`.
    fn too_few(&mut self, min: Option<usize>, actual: usize, entries: &str, path: &Path<'_>) {
        if let Some(min) = min.filter(|min| actual < *min) {
            let dialect = self.dialect;
            self.fail(|| dialect.too_few(actual, min, entries, path));
        }
    }

    fn transition(
        &mut self,
        node: &Node,
        new: Option<&Value>,
        old: Option<&Value>,
        path: &Path<'_>,
    ) {
        if !node.update.is_empty() {
            transition::check(&mut self.errors, node, new, old, path);
        }
    }

    /// Checks `anyOf`, `oneOf`, `allOf` and `not`. In them no value counts as unchanged.
    fn junctors(&mut self, node: &Node, value: &Value, path: &Path<'_>) {
        for choice in &node.choices {
            let alternatives = Alternatives {
                branches: &choice.branches,
                exactly_one: choice.exactly_one,
            };
            self.choice(alternatives, value, path);
        }
        if let Some(custom) = node.custom.as_deref() {
            for (branches, exactly_one) in [(&custom.any_of, false), (&custom.one_of, true)] {
                if !branches.is_empty() {
                    let alternatives = Alternatives {
                        branches,
                        exactly_one,
                    };
                    self.choice(alternatives, value, path);
                }
            }
            self.all_of(custom, value, path);
        }
        let not_of_custom = || node.custom.as_ref().and_then(|custom| custom.not.as_ref());
        if let Some(not) = node.not.as_deref().or_else(not_of_custom)
            && self.branch(not, value, path).errors.found() == 0
        {
            let dialect = self.dialect;
            self.fail(|| dialect.excluded(value, path));
        }
    }

    /// Judges a value by a branch. The errors are kept if they may be reported.
    fn branch(&self, branch: &Node, value: &Value, path: &Path<'_>) -> Self {
        let errors = if self.dialect.reports_best_branch {
            ErrorList::default()
        } else {
            ErrorList::counting()
        };
        let mut walk = Self::new(self.dialect, errors);
        walk.value(branch, value, None, path);
        walk
    }

    fn choice(&mut self, alternatives: Alternatives<'_>, value: &Value, path: &Path<'_>) {
        let (mut valid, mut matches) = (0, 0);
        let mut best: Option<Self> = None;
        for branch in alternatives.branches {
            let judged = self.branch(branch, value, path);
            if judged.errors.found() == 0 {
                valid += 1;
                matches = judged.matches;
                if !alternatives.exactly_one {
                    break;
                }
            } else if best
                .as_ref()
                .is_none_or(|best| best.matches < judged.matches)
            {
                best = Some(judged);
            }
        }
        if valid == 1 {
            self.matches += matches;
        } else if self.dialect.reports_best_branch {
            self.report_best(alternatives, valid, best, path);
        } else {
            self.report_meant(alternatives, valid, value, path);
        }
    }

    /// Reports that no alternative, or more than one, is valid; then the errors of the one that matches most.
    fn report_best(
        &mut self,
        alternatives: Alternatives<'_>,
        valid: usize,
        best: Option<Self>,
        path: &Path<'_>,
    ) {
        self.fail(|| match (alternatives.exactly_one, valid) {
            (false, _) => unplaced("must validate at least one schema (anyOf)", path),
            (true, valid) => {
                let found = match valid {
                    0 => "none valid".to_owned(),
                    valid => format!("{valid} valid alternatives"),
                };
                let detail = "must validate one and only one schema (oneOf). Found";
                unplaced(&format!("{detail} {found}"), path)
            }
        });
        if let Some(best) = best.filter(|_| valid == 0) {
            self.append(best);
        }
    }

    /// Reports the errors of the alternative that a value means, or which fields select one.
    fn report_meant(
        &mut self,
        alternatives: Alternatives<'_>,
        valid: usize,
        value: &Value,
        path: &Path<'_>,
    ) {
        // The errors would not be returned, so the branch need not be found.
        if !self.errors.keeps_more() {
            self.errors.count();
            return;
        }
        let branches = alternatives.branches;
        if let Some(members) = members(branches, value) {
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
        let invalid = |detail: &str| FieldError::invalid(&path.field(), value, detail);
        if valid > 1 {
            self.fail(|| invalid("must be of exactly one of the allowed forms"));
            return;
        }
        match meant(self.dialect, branches, value) {
            Some(branch) => self.value(branch, value, None, path),
            None => self.fail(|| invalid("must be of one of the allowed forms")),
        }
    }

    fn all_of(&mut self, custom: &CustomRules, value: &Value, path: &Path<'_>) {
        let mut valid = 0;
        for branch in &custom.all_of {
            let judged = self.branch(branch, value, path);
            valid += usize::from(judged.errors.found() == 0);
            self.append(judged);
        }
        if valid < custom.all_of.len() {
            self.fail(|| {
                let none = if valid == 0 { ". None validated" } else { "" };
                let detail = format!("must validate all the schemas (allOf){none}");
                unplaced(&detail, path)
            });
        }
    }

    /// Adds what the walk over an alternative has found.
    fn append(&mut self, other: Self) {
        self.matches += other.matches;
        self.errors.append(other.errors);
    }
}

/// The number of rules of kube-openapi that are applied to a value, by which it measures how much a value matches: those
/// of the alternatives, of the enum and of the schema itself, of the type, the kind of value, and the format.
fn applied_rules(node: &Node, value: &Value, is_of_type: bool) -> usize {
    let has_type = usize::from(!node.types.is_any() || node.format.is_some());
    let of_type = if is_of_type { has_type } else { 0 };
    let has_format = value.is_string() && node.format.is_some();
    let of_kind = match value {
        Value::Null => return of_type,
        Value::Bool(_) => 0,
        Value::String(_) | Value::Object(_) => 1,
        Value::Number(_) | Value::Array(_) => 2,
    };
    of_type + 4 + of_kind + has_type + usize::from(has_format)
}

/// The fields of an externally tagged enum, in which every branch for an object requires one field.
fn members<'a>(branches: &'a [Node], value: &Value) -> Option<Vec<&'a str>> {
    if !value.is_object() {
        return None;
    }
    let mut names = Vec::with_capacity(branches.len());
    for branch in branches.iter().filter(|branch| branch.types.accepts(value)) {
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
fn meant<'a>(
    dialect: &'static ValidationDialect,
    branches: &'a [Node],
    value: &Value,
) -> Option<&'a Node> {
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
    let mut by_tag = branches.iter().filter(tagged);
    if let (Some(only), None) = (by_tag.next(), by_tag.next()) {
        return Some(only);
    }
    let of_type = branches.iter().filter(|branch| branch.types.accepts(value));
    of_type.min_by_key(|branch| judge(dialect, branch, value, None).found())
}

fn text_of(value: &Value) -> Cow<'_, str> {
    value
        .as_str()
        .map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}
