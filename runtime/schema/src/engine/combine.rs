//! Combines several schemas of one value into one node: all of them (`$ref` with siblings, `allOf`), or one of them
//! (`oneOf`, `anyOf`).
//!
//! A structural schema has its types and fields outside of `oneOf` and `anyOf`. So the fields of all variants are
//! hoisted to the parent, with the rules that all variants share; the variants stay as branches that only validate.

use serde_json::{Number, Value};

use super::node::{Node, Property, Rules, Types, VALIDATIONS};
use super::problems::{Problems, join};
use crate::number;

/// Merges `other` into `node`, for a value that must match both. For conflicts, `node` or the tighter rule is used.
pub(crate) fn both(problems: &mut Problems, node: &mut Node, other: Node, path: &str) {
    match node.types.both(other.types) {
        Some(types) => node.types = types,
        None => problems.error(
            path,
            format_args!(
                "no value is both {} and {}",
                node.types.names().join(" or "),
                other.types.names().join(" or ")
            ),
        ),
    }
    node.nullable |= other.nullable;
    node.preserve_unknown |= other.preserve_unknown;
    node.is_end |= other.is_end;
    node.int_or_string |= other.int_or_string;
    node.embedded_resource |= other.embedded_resource;
    node.omits_empty |= other.omits_empty;
    node.is_sensitive |= other.is_sensitive;
    node.twins_allowed |= other.twins_allowed;
    only(problems, &mut node.format, other.format, "formats", path);
    or(&mut node.title, other.title);
    or(&mut node.description, other.description);
    or(&mut node.type_name, other.type_name);
    or(&mut node.list_type, other.list_type);
    or(&mut node.atomic_map, other.atomic_map);
    or(&mut node.patch, other.patch);
    or(&mut node.canonical, other.canonical);
    or(&mut node.default, other.default);
    node.update = node.update.or(other.update);
    for property in other.properties {
        match node.property_mut(&property.name) {
            None => node.properties.push(property),
            Some(own) => {
                own.required |= property.required;
                let below = join(path, &property.name);
                both(problems, own.node_mut(), property.into_node(), &below);
            }
        }
    }
    for (own, other) in [
        (&mut node.additional, other.additional),
        (&mut node.keys, other.keys),
        (&mut node.items, other.items),
    ] {
        match (own, other) {
            (own @ None, other) => *own = other,
            (Some(own), Some(other)) => both(problems, own, *other, &format!("{path}[*]")),
            (Some(_), None) => {}
        }
    }
    if node.known_values.is_empty() {
        node.known_values = other.known_values;
    }
    node.choices.extend(other.choices);
    or(&mut node.not, other.not);
    for (name, value) in other.extensions {
        match node.extensions.iter_mut().find(|(own, _)| *own == name) {
            None => node.extensions.push((name, value)),
            Some((_, own)) if name == VALIDATIONS => both_validations(own, value),
            Some(_) => {}
        }
    }
    node.checks.extend(other.checks);
    node.computed.extend(other.computed);
    if !other.rules.is_empty() {
        both_rules(problems, &mut node.rules, other.rules.into_rules(), path);
    }
}

/// Adds the rules in CEL of another schema for the same value, each once.
fn both_validations(own: &mut Value, other: Value) {
    if let (Value::Array(own), Value::Array(other)) = (own, other) {
        for rule in other {
            if !own.contains(&rule) {
                own.push(rule);
            }
        }
    }
}

/// Merges rules that must both hold; the tighter of two bounds is used.
fn both_rules(problems: &mut Problems, own: &mut Rules, other: Rules, path: &str) {
    let less = |a: &Number, b: &Number| number::compare(a, b).is_lt();
    tighter(&mut own.minimum, other.minimum, |own, other| {
        less(own, other)
    });
    tighter(&mut own.maximum, other.maximum, |own, other| {
        less(other, own)
    });
    tighter(
        &mut own.exclusive_minimum,
        other.exclusive_minimum,
        |own, other| less(own, other),
    );
    tighter(
        &mut own.exclusive_maximum,
        other.exclusive_maximum,
        |own, other| less(other, own),
    );
    for (own, other) in [
        (&mut own.min_length, other.min_length),
        (&mut own.min_bytes, other.min_bytes),
        (&mut own.min_items, other.min_items),
        (&mut own.min_properties, other.min_properties),
    ] {
        tighter(own, other, |own, other| own < other);
    }
    for (own, other) in [
        (&mut own.max_length, other.max_length),
        (&mut own.max_bytes, other.max_bytes),
        (&mut own.max_items, other.max_items),
        (&mut own.max_properties, other.max_properties),
    ] {
        tighter(own, other, |own, other| other < own);
    }
    only(
        problems,
        &mut own.multiple_of,
        other.multiple_of,
        "multiples",
        path,
    );
    only(problems, &mut own.pattern, other.pattern, "patterns", path);
    only(problems, &mut own.union, other.union, "unions", path);
    if own.values.is_empty() {
        own.values = other.values;
    } else if !other.values.is_empty() {
        own.values.retain(|value| other.values.contains(value));
        // An empty list would mean that all values are allowed.
        if own.values.is_empty() {
            problems.error(path, "the enums have no value in common");
        }
    }
    for rule in other.own {
        if !own.own.contains(&rule) {
            own.own.push(rule);
        }
    }
    own.unique |= other.unique;
    own.required |= other.required;
    own.forbidden |= other.forbidden;
    own.requires.extend(other.requires);
    own.conflicts.extend(other.conflicts);
}

/// Replaces a bound that is missing or `looser` than the other.
fn tighter<T>(own: &mut Option<T>, other: Option<T>, looser: impl Fn(&T, &T) -> bool) {
    if let Some(other) = other
        && own.as_ref().is_none_or(|own| looser(own, &other))
    {
        *own = Some(other);
    }
}

/// Merges a keyword that only one of the two may have; a node has room for one, and the other would not be enforced.
fn only<T: PartialEq>(
    problems: &mut Problems,
    own: &mut Option<T>,
    other: Option<T>,
    what: &str,
    path: &str,
) {
    match (own.as_ref(), other) {
        (None, other) => *own = other,
        (Some(own), Some(other)) if *own != other => {
            problems.error(path, format_args!("two different {what} for one value"));
        }
        _ => {}
    }
}

fn or<T>(own: &mut Option<T>, other: Option<T>) {
    if own.is_none() {
        *own = other;
    }
}

/// Whether all alternatives are named strings: schemars' form of enums with documented variants.
pub(crate) fn is_plain_enum(branches: &[Node]) -> bool {
    branches.iter().all(|b| {
        b.types == Types::STRING
            && !b.rules.values.is_empty()
            && b.rules.values.iter().all(Value::is_string)
    })
}

/// Merges them to one enum; the documentation of the variants is appended to the description, as in Kubernetes.
pub(crate) fn plain_enum(node: &mut Node, branches: Vec<Node>, order: &[String]) {
    let mut values: Vec<(Value, Option<String>)> = Vec::new();
    for branch in branches {
        let description = branch
            .description
            .filter(|_| branch.rules.values.len() == 1);
        for value in branch.rules.into_rules().values {
            if !values.iter().any(|(known, _)| *known == value) {
                values.push((value, description.clone()));
            }
        }
    }
    let place = |value: &Value| {
        order
            .iter()
            .position(|name| value == name.as_str())
            .unwrap_or(usize::MAX)
    };
    values.sort_by_key(|(value, _)| place(value));
    if values.iter().any(|(_, description)| description.is_some()) {
        let lines = values.iter().map(|(value, description)| match description {
            Some(text) => format!(" - `{value}` {}", text.replace('\n', " ")),
            None => format!(" - `{value}`"),
        });
        describe(
            node,
            &format!(
                "Possible enum values:\n{}",
                lines.collect::<Vec<_>>().join("\n")
            ),
        );
    }
    node.types = Types::STRING;
    node.rules.values = values.into_iter().map(|(value, _)| value).collect();
}

/// Appends a paragraph to the description.
pub(crate) fn describe(node: &mut Node, paragraph: &str) {
    node.description = Some(match node.description.take() {
        Some(above) => format!("{above}\n\n{paragraph}"),
        None => paragraph.to_owned(),
    });
}

/// Whether the alternatives are named strings and any other string: an enum with a variant for unknown values.
pub(crate) fn is_open_enum(branches: &[Node]) -> bool {
    let any_string = |b: &Node| {
        b.types == Types::STRING
            && b.rules.values.is_empty()
            && b.rules.pattern.is_none()
            && b.format.is_none()
    };
    branches.iter().all(|b| b.types == Types::STRING)
        && branches.iter().any(any_string)
        && branches
            .iter()
            .all(|b| any_string(b) || !b.rules.values.is_empty())
}

/// Merges them to a string with some known values.
pub(crate) fn open_enum(node: &mut Node, branches: &[Node]) {
    node.types = Types::STRING;
    if node.known_values.is_empty() {
        node.known_values = branches
            .iter()
            .flat_map(|b| b.rules.values.clone())
            .collect();
    }
}

/// Whether the alternatives are an integer and a string, which is Kubernetes' IntOrString.
pub(crate) fn is_int_or_string(branches: &[Node]) -> bool {
    let plain = |types: Types| {
        branches
            .iter()
            .any(|b| b.types == types && b.rules.pattern.is_none() && b.rules.values.is_empty())
    };
    branches.len() == 2 && plain(Types::INTEGER) && plain(Types::STRING)
}

/// Hoists types and fields of the variants to the parent.
pub(crate) fn hoist(problems: &mut Problems, node: &mut Node, branches: &[Node], path: &str) {
    let mut hoisted = branches[0].clone();
    for branch in &branches[1..] {
        hoisted = either(problems, hoisted, branch.clone(), path);
    }
    hoisted.title = None;
    hoisted.description = None;
    hoisted.type_name = None;
    both(problems, node, hoisted, path);
}

/// Reports fields of branches that their parent does not describe.
pub(crate) fn check_described(problems: &mut Problems, node: &Node, branches: &[Node], path: &str) {
    for name in branches.iter().flat_map(|b| &b.properties).map(|p| &p.name) {
        if node.property(name).is_none() && node.additional.is_none() && !node.preserve_unknown {
            problems.error(
                path,
                format_args!("field `{name}` stands inside of oneOf or anyOf only"),
            );
        }
    }
}

/// The tightest node that accepts what either accepts.
fn either(problems: &mut Problems, a: Node, b: Node, path: &str) -> Node {
    let same_format = a.format == b.format;
    let mut node = Node {
        types: a.types.union(b.types),
        nullable: a.nullable || b.nullable,
        format: a.format.filter(|_| same_format),
        title: a.title.or(b.title),
        description: a.description.or(b.description),
        type_name: a
            .type_name
            .filter(|name| b.type_name.as_ref() == Some(name)),
        // A variant of any content must keep it.
        preserve_unknown: a.preserve_unknown
            || b.preserve_unknown
            || a.types.is_any()
            || b.types.is_any(),
        is_end: a.is_end || b.is_end,
        int_or_string: a.int_or_string && b.int_or_string,
        embedded_resource: a.embedded_resource && b.embedded_resource,
        omits_empty: a.omits_empty && b.omits_empty,
        is_sensitive: a.is_sensitive || b.is_sensitive,
        twins_allowed: a.twins_allowed || b.twins_allowed,
        atomic_map: a.atomic_map.or(b.atomic_map),
        patch: a.patch.or(b.patch),
        canonical: a.canonical.filter(|_| a.canonical == b.canonical),
        update: a.update.or(b.update),
        rules: either_rules(a.rules.into_rules(), b.rules.into_rules()).into(),
        ..Node::default()
    };
    node.list_type = match (a.list_type, b.list_type) {
        (Some(a), Some(b)) if a != b => {
            problems.error(path, "the variants differ in their list type");
            None
        }
        (a, b) => a.or(b),
    };
    if a.default != b.default {
        problems.error(path, "a default that not all variants share cannot be applied; compute it or default the whole value");
    }
    node.default = a.default.filter(|_| b.default.is_some());
    node.additional = either_box(problems, a.additional, b.additional, path);
    node.items = either_box(problems, a.items, b.items, path);
    node.keys = a
        .keys
        .zip(b.keys)
        .map(|(a, b)| Box::new(either(problems, *a, *b, path)));
    node.properties = either_properties(problems, a.properties, b.properties, path);
    node.checks = a.checks;
    node.checks.extend(b.checks);
    node.extensions = a
        .extensions
        .into_iter()
        .filter(|extension| b.extensions.contains(extension))
        .collect();
    node
}

fn either_box(
    problems: &mut Problems,
    a: Option<Box<Node>>,
    b: Option<Box<Node>>,
    path: &str,
) -> Option<Box<Node>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(Box::new(either(problems, *a, *b, &format!("{path}[*]")))),
        (a, b) => a.or(b),
    }
}

fn either_properties(
    problems: &mut Problems,
    a: Vec<Property>,
    mut b: Vec<Property>,
    path: &str,
) -> Vec<Property> {
    let mut properties = Vec::with_capacity(a.len() + b.len());
    for property in a {
        let below = join(path, &property.name);
        let twin = b.iter().position(|p| p.name == property.name);
        properties.push(match twin.map(|at| b.remove(at)) {
            Some(twin) => Property {
                name: property.name.clone(),
                required: property.required && twin.required,
                node: either(problems, property.into_node(), twin.into_node(), &below).into(),
            },
            None => of_one_variant(problems, property, &below),
        });
    }
    for property in b {
        let below = join(path, &property.name);
        properties.push(of_one_variant(problems, property, &below));
    }
    properties
}

/// Checks a field that some variants do not have: a default would be added to those too.
fn of_one_variant(problems: &mut Problems, mut property: Property, path: &str) -> Property {
    if property.node.default.is_some() {
        property.node_mut().default = None;
        problems.error(path, "a default inside one variant would be applied to the others too; put it on a struct in the variant");
    }
    property.required = false;
    property
}

fn either_rules(a: Rules, b: Rules) -> Rules {
    fn same<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<T> {
        if a == b { a } else { None }
    }
    let same_pattern = a.pattern == b.pattern;
    let mut own = a.own;
    own.retain(|rule| b.own.contains(rule));
    let mut values = Vec::new();
    if !a.values.is_empty() && !b.values.is_empty() {
        values = a.values;
        for value in b.values {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    Rules {
        minimum: same(a.minimum, b.minimum),
        maximum: same(a.maximum, b.maximum),
        exclusive_minimum: same(a.exclusive_minimum, b.exclusive_minimum),
        exclusive_maximum: same(a.exclusive_maximum, b.exclusive_maximum),
        multiple_of: same(a.multiple_of, b.multiple_of),
        min_length: same(a.min_length, b.min_length),
        max_length: same(a.max_length, b.max_length),
        min_bytes: same(a.min_bytes, b.min_bytes),
        max_bytes: same(a.max_bytes, b.max_bytes),
        pattern: a.pattern.filter(|_| same_pattern),
        min_items: same(a.min_items, b.min_items),
        max_items: same(a.max_items, b.max_items),
        min_properties: same(a.min_properties, b.min_properties),
        max_properties: same(a.max_properties, b.max_properties),
        values,
        own,
        unique: a.unique && b.unique,
        union: same(a.union, b.union),
        ..Rules::default()
    }
}
