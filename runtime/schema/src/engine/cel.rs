//! Rules without OpenAPI keywords, written as CEL in `x-kubernetes-validations` of a CRD.
//!
//! A rule is placed where kube-apiserver evaluates it: one about the presence of a field is on the object around it.
//! Rules that CEL cannot express, or that kube-apiserver would refuse (`oldSelf` below a list without correlation, an
//! estimated cost over the limit), become comments for the author.

mod cost;
mod kind;
mod text;

use serde_json::{Map, Value, json};

use self::cost::{Cost, most_elements, most_elements_of};
use self::kind::Kind;
use self::text::{escape, literal};
use super::node::OBJECT_META_NAME;
use super::node::{ListType, Node, Property, Union};
use super::own_rules;

/// Adds the rules of a tree to its printed form. Returns a line for each rule that cannot be expressed.
pub(crate) fn write(root: &Node, printed: &mut Value) -> Vec<String> {
    let mut writer = Writer::default();
    writer.node(root, printed, &Place::default());
    writer.unsaid
}

/// Position of a value in the schema.
#[derive(Clone, Debug)]
struct Place {
    /// Path for comments: `spec.ports[].name`.
    path: String,
    /// Maximum number of evaluations: the product of the maximum sizes of all lists and maps around.
    times: Cost,
    /// Whether kube-apiserver correlates old and new values here.
    has_old: bool,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            path: String::new(),
            times: Cost::ONE,
            has_old: true,
        }
    }
}

impl Place {
    fn field(&self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            path: format!("{}{dot}{name}", self.path),
            ..self.clone()
        }
    }

    fn items(&self, list: &Node) -> Self {
        Self {
            path: format!("{}[]", self.path),
            times: self.times.times(most_elements_of(list)),
            has_old: self.has_old && matches!(list.list_type, Some(ListType::Map(_))),
        }
    }

    fn values(&self, map: &Node) -> Self {
        Self {
            path: format!("{}{{}}", self.path),
            times: self.times.times(most_elements_of(map)),
            has_old: self.has_old,
        }
    }

    fn shown(&self) -> &str {
        if self.path.is_empty() {
            "the object"
        } else {
            &self.path
        }
    }
}

/// A rule that is not placed yet.
#[derive(Debug)]
struct Rule {
    text: String,
    message: String,
    cost: Cost,
    /// Description of the rule, for the comment if it cannot be placed.
    name: &'static str,
}

impl Rule {
    fn new(name: &'static str, text: String, message: impl Into<String>, cost: Cost) -> Self {
        Self {
            text,
            message: message.into(),
            cost,
            name,
        }
    }

    fn is_transition(&self) -> bool {
        self.text.contains("oldSelf")
    }
}

#[derive(Debug, Default)]
struct Writer {
    unsaid: Vec<String>,
    total: Cost,
}

impl Writer {
    fn node(&mut self, node: &Node, printed: &mut Value, place: &Place) {
        if node.type_name.as_deref() == Some(OBJECT_META_NAME) {
            return;
        }
        if let Value::Object(keywords) = printed {
            self.rules(node, keywords, place);
        }
        for property in &node.properties {
            if let Some(inner) = printed
                .pointer_mut("/properties")
                .and_then(|p| p.get_mut(&property.name))
            {
                self.node(&property.node, inner, &place.field(&property.name));
            }
        }
        if let (Some(values), Some(inner)) =
            (&node.additional, printed.get_mut("additionalProperties"))
        {
            self.element(values, inner, &place.values(node));
        }
        if let (Some(items), Some(inner)) = (&node.items, printed.get_mut("items")) {
            self.element(items, inner, &place.items(node));
        }
    }

    /// Adds the rules of a value in a map or an item of a list: rules for its updates cannot be placed on an object
    /// around it.
    fn element(&mut self, node: &Node, printed: &mut Value, place: &Place) {
        if !node.update.is_empty() {
            self.unsaid(
                place,
                "`immutable`, `update(..)` and `monotonic` inside of `each`",
            );
        }
        self.node(node, printed, place);
    }

    fn unsaid(&mut self, place: &Place, what: &str) {
        self.unsaid.push(format!("{}: {what}", place.shown()));
    }

    /// Adds the rules of one value and of its fields.
    fn rules(&mut self, node: &Node, keywords: &mut Map<String, Value>, place: &Place) {
        if !node.checks.is_empty() {
            // A value that is kept in any form must still be a value of the field's Rust type.
            let what = if node.preserve_unknown {
                "the type of `preserve_unknown`, or `custom` (checks that are written in Rust)"
            } else {
                "`custom` (a check that is written in Rust)"
            };
            self.unsaid(place, what);
        }
        for (name, _) in &node.computed {
            self.unsaid(
                &place.field(name),
                "`default_with` (a default that is computed)",
            );
        }
        let mut rules = Vec::new();
        self.value(node, keywords, place, &mut rules);
        if let Some(fields) = keywords.get("properties").and_then(Value::as_object) {
            self.fields(node, fields, place, &mut rules);
        }
        for rule in rules {
            self.place(rule, keywords, place);
        }
    }

    /// Adds a rule to a schema, or a comment if it cannot be placed there.
    fn place(&mut self, rule: Rule, keywords: &mut Map<String, Value>, place: &Place) {
        let whole = rule.cost.times(place.times);
        let why = if rule.is_transition() && !place.has_old {
            Some("kube-apiserver does not know the old items of a list without `list = map(..)`")
        } else if !whole.is_within_rule() || !self.total.plus(whole).is_within_definition() {
            Some(
                "its cost has no bound that kube-apiserver takes; bound lists, maps and strings by `items`, `props` and `len`",
            )
        } else {
            None
        };
        if let Some(why) = why {
            self.unsaid(place, &format!("{} ({}): {why}", rule.name, rule.message));
            return;
        }
        self.total = self.total.plus(whole);
        let all = keywords
            .entry("x-kubernetes-validations")
            .or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            let is_known = all.iter().any(|known| known["rule"] == rule.text.as_str());
            if !is_known {
                all.push(json!({ "rule": rule.text, "message": rule.message }));
            }
        }
    }

    /// Adds the rules of a value that do not depend on its position.
    fn value(
        &mut self,
        node: &Node,
        keywords: &mut Map<String, Value>,
        place: &Place,
        out: &mut Vec<Rule>,
    ) {
        let rules = &node.rules;
        let kind = Kind::of(keywords);
        if rules.required {
            // An empty value counts as absent, so it is refused.
            let is_empty_map = node.is_unset(&json!({}));
            let keyword = match keywords.get("type").and_then(Value::as_str) {
                Some("string") => Some("minLength"),
                Some("array") => Some("minItems"),
                Some("object") if is_empty_map => Some("minProperties"),
                _ => None,
            };
            if let Some(keyword) = keyword.filter(|keyword| !keywords.contains_key(*keyword)) {
                keywords.insert(keyword.to_owned(), 1.into());
            }
            if kind == Some(Kind::IntOrString) {
                let text = "self != ''".to_owned();
                out.push(Rule::new(
                    "`required`",
                    text,
                    "must not be empty",
                    Cost::CALL,
                ));
            }
        }
        let reading = Cost::CALL
            .times(Cost::of(3))
            .plus(Cost::traversal(most_elements(node)));
        for (rule, argument) in own_rules::of(rules) {
            let literal = literal(argument, kind);
            let text = (rule.cel)(argument, literal.as_deref()).filter(|_| !node.nullable);
            let Some(text) = text else {
                self.unsaid(place, rule.key);
                continue;
            };
            let cost = if text.reads_all { reading } else { Cost::CALL };
            out.push(Rule::new(rule.key, text.rule, text.message, cost));
        }
        if kind == Some(Kind::Text) && !node.nullable {
            for (bound, operator, word) in [
                (rules.min_bytes, ">=", "least"),
                (rules.max_bytes, "<=", "most"),
            ] {
                if let Some(bound) = bound {
                    let text = format!("size(bytes(self)) {operator} {bound}");
                    let message = format!("must have at {word} {bound} bytes");
                    out.push(Rule::new("`bytes`", text, message, reading));
                }
            }
        }
        if rules.unique && node.list_type != Some(ListType::Set) {
            let elements = most_elements_of(node);
            let inner = node.items.as_ref().map_or(Cost::CALL, |items| {
                Cost::CALL.plus(Cost::traversal(most_elements(items)))
            });
            let cost = elements.times(elements).times(inner.plus(Cost::of(4)));
            out.push(Rule::new(
                "`unique`",
                "self.all(x, self.exists_one(y, x == y))".to_owned(),
                "items must differ",
                cost,
            ));
        }
        if node.keys.is_some() {
            self.unsaid(place, "`keys` (what the keys of a map must be)");
        }
    }

    /// Adds the rules between fields, and between a field and its old value.
    fn fields(
        &mut self,
        node: &Node,
        printed: &Map<String, Value>,
        place: &Place,
        out: &mut Vec<Rule>,
    ) {
        for property in &node.properties {
            let (name, rules) = (&property.name, &property.node.rules);
            let update = property.node.update;
            let speaks = rules.forbidden
                || !rules.requires.is_empty()
                || !rules.conflicts.is_empty()
                || !update.is_empty();
            if !speaks {
                continue;
            }
            let Some(field) = Field::of(property, printed) else {
                let what = "rules about this field, which CEL cannot name";
                self.unsaid(&place.field(name), what);
                continue;
            };
            if rules.forbidden {
                let text = format!("!({})", field.is_set("self"));
                let message = format!("{name} must not be set");
                out.push(Rule::new("`forbidden`", text, message, Cost::of(8)));
            }
            out.extend(self.siblings(node, property, &field, printed, place));
            field.transitions(property, out);
        }
        if let Some(union) = &node.rules.union {
            self.union(node, union, printed, place, out);
        }
    }

    fn siblings(
        &mut self,
        node: &Node,
        property: &Property,
        field: &Field,
        printed: &Map<String, Value>,
        place: &Place,
    ) -> Vec<Rule> {
        let mut out = Vec::new();
        let (name, rules) = (&property.name, &property.node.rules);
        for (others, key, negation, word) in [
            (&rules.requires, "`requires`", "", "must"),
            (&rules.conflicts, "`conflicts`", "!", "may not"),
        ] {
            for other in others {
                let sibling = node
                    .property(other)
                    .and_then(|other| Field::of(other, printed));
                let Some(sibling) = sibling else {
                    self.unsaid(&place.field(name), key);
                    continue;
                };
                let text = format!(
                    "!({}) || {negation}({})",
                    field.is_set("self"),
                    sibling.is_set("self")
                );
                let message = format!("{other} {word} be set when {name} is set");
                out.push(Rule::new(key, text, message, Cost::of(16)));
            }
        }
        out
    }

    fn union(
        &mut self,
        node: &Node,
        union: &Union,
        printed: &Map<String, Value>,
        place: &Place,
        out: &mut Vec<Rule>,
    ) {
        const KEY: &str = "`union`";
        let field = |name: &str| {
            node.property(name)
                .and_then(|found| Field::of(found, printed))
        };
        let members: Option<Vec<(Field, &str, &[String])>> = union
            .members
            .iter()
            .map(|(name, values)| Some((field(name)?, name.as_str(), values.as_slice())))
            .collect();
        let Some(members) = members else {
            self.unsaid(place, KEY);
            return;
        };
        let cost = Cost::of(12).times(Cost::of(members.len() + 1));
        let Some(tag) = &union.discriminator else {
            let names: Vec<&str> = members.iter().map(|(_, name, _)| *name).collect();
            let sum: Vec<String> = members
                .iter()
                .map(|(member, ..)| format!("({} ? 1 : 0)", member.is_set("self")))
                .collect();
            let (operator, number) = if union.allow_none {
                ("<=", "at most")
            } else {
                ("==", "exactly")
            };
            let text = format!("{} {operator} 1", sum.join(" + "));
            let message = format!("{number} one of {} must be set", names.join(", "));
            out.push(Rule::new(KEY, text, message, cost));
            return;
        };
        let Some(selects) = field(tag) else {
            self.unsaid(place, KEY);
            return;
        };
        let selected = format!("(has(self.{0}) ? self.{0} : '')", selects.name);
        let list = |values: &[String]| {
            let quoted: Vec<String> = values.iter().map(|value| text::quote(value)).collect();
            format!("[{}]", quoted.join(", "))
        };
        for (member, name, values) in &members {
            let text = format!(
                "({}) == ({selected} in {})",
                member.is_set("self"),
                list(values)
            );
            let message = format!(
                "{name} must be set if {tag} is {}, and only then",
                values.join(" or ")
            );
            out.push(Rule::new(KEY, text, message, cost));
        }
        if !union.allow_none {
            let text = format!("{selected} != ''");
            out.push(Rule::new(KEY, text, format!("{tag} must be set"), cost));
        }
        if !union.closed {
            let mut known: Vec<String> = union
                .members
                .iter()
                .flat_map(|(_, values)| values)
                .cloned()
                .collect();
            let message = format!("{tag} must be {}", known.join(" or "));
            known.push(String::new());
            let text = format!("{selected} in {}", list(&known));
            out.push(Rule::new(KEY, text, message, cost));
        }
    }
}

/// A field that a rule can refer to.
#[derive(Debug)]
struct Field {
    /// Name of the field in CEL.
    name: String,
    kind: Kind,
}

impl Field {
    fn of(property: &Property, printed: &Map<String, Value>) -> Option<Self> {
        let kind = Kind::of(printed.get(&property.name)?.as_object()?)?;
        // Null is a value there, and CEL compares it with no other type.
        if property.node.nullable {
            return None;
        }
        Some(Self {
            name: escape(&property.name)?,
            kind,
        })
    }

    /// Expression: whether the field of `object` is present and not empty.
    fn is_set(&self, object: &str) -> String {
        let field = format!("{object}.{}", self.name);
        match self.kind {
            Kind::Text | Kind::List | Kind::Map | Kind::Bytes => {
                format!("has({field}) && size({field}) > 0")
            }
            Kind::IntOrString => format!("has({field}) && {field} != ''"),
            Kind::Integer | Kind::Float | Kind::Bool | Kind::Other => format!("has({field})"),
        }
    }

    /// Adds the rules for updates of the field.
    fn transitions(&self, property: &Property, out: &mut Vec<Rule>) {
        let (node, update, shown) = (&property.node, property.node.update, &property.name);
        let name = &self.name;
        let (set, was_set) = (self.is_set("self"), self.is_set("oldSelf"));
        let same = format!("self.{name} == oldSelf.{name}");
        let cost = Cost::of(20).plus(Cost::traversal(most_elements(node)));
        let mut rule =
            |wanted: bool, key: &'static str, text: String, message: &str, cost: Cost| {
                if wanted {
                    out.push(Rule::new(key, text, format!("{shown} {message}"), cost));
                }
            };
        rule(
            update.immutable,
            "`immutable`",
            format!("({set}) ? ({was_set}) && {same} : !({was_set})"),
            "is immutable",
            cost,
        );
        rule(
            update.no_set,
            "`update(no_set)`",
            format!("!({set}) || ({was_set})"),
            "cannot be set once created",
            cost,
        );
        rule(
            update.no_unset,
            "`update(no_unset)`",
            format!("({set}) || !({was_set})"),
            "cannot be cleared once set",
            cost,
        );
        rule(
            update.no_modify,
            "`update(no_modify)`",
            format!("!({set}) || !({was_set}) || {same}"),
            "cannot be modified once set",
            cost,
        );
        rule(
            update.monotonic,
            "`monotonic`",
            format!("!has(self.{name}) || !has(oldSelf.{name}) || self.{name} >= oldSelf.{name}"),
            "may not be decreased",
            cost,
        );
        let elements = most_elements_of(node);
        let equality = Cost::of(8).plus(Cost::traversal(most_compared(node)));
        let cost = cost.plus(elements.times(elements).times(equality));
        let Some(contained) = contained(node) else {
            rule(
                update.no_add_item || update.no_remove_item,
                "`update(no_add_item, no_remove_item)`",
                String::new(),
                "has items whose keys CEL cannot name",
                Cost::UNBOUNDED,
            );
            return;
        };
        let all = |one: &str, other: &str| {
            let found = contained(&format!("{other}.{name}"));
            format!("!has({one}.{name}) || {one}.{name}.all(x, has({other}.{name}) && {found})")
        };
        rule(
            update.no_add_item,
            "`update(no_add_item)`",
            all("self", "oldSelf"),
            "may not get items",
            cost,
        );
        rule(
            update.no_remove_item,
            "`update(no_remove_item)`",
            all("oldSelf", "self"),
            "may not lose items",
            cost,
        );
    }
}

/// Number of elements compared to decide whether two items are the same.
fn most_compared(node: &Node) -> Cost {
    let items = node.items.as_deref();
    match &node.list_type {
        Some(ListType::Map(keys)) => keys
            .iter()
            .filter_map(|key| items?.property(key))
            .map(|key| most_elements(&key.node))
            .fold(Cost::ONE, Cost::plus),
        _ => items.map_or(Cost::ONE, most_elements),
    }
}

/// Expression: whether an item `x`, or the key of a map, is in another list or map; by its keys in a list map.
fn contained(node: &Node) -> Option<impl Fn(&str) -> String> {
    let same = match &node.list_type {
        Some(ListType::Map(keys)) => {
            let keys = keys.iter().map(|key| {
                let key = escape(key)?;
                Some(format!("y.{key} == x.{key}"))
            });
            Some(keys.collect::<Option<Vec<_>>>()?.join(" && "))
        }
        _ => None,
    };
    Some(move |list: &str| match &same {
        Some(same) => format!("{list}.exists(y, {same})"),
        None => format!("x in {list}"),
    })
}

#[cfg(test)]
mod tests;
