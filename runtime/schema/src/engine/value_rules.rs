//! The keywords of a schema about the value itself, without schemas below it: types, bounds, patterns, unions, topology.

use serde_json::{Map, Number, Value, json};

use super::keywords::{flag, list, number, ordered, size, strings, text};
use super::node::{
    ListType, Node, PATCH_MERGE_KEY, PATCH_STRATEGY, PatchStrategy, Rules, Types, Union,
};
use super::own_rules;
use super::problems::{Problems, join};
use crate::regexp::Pattern;

/// The types that a value may have.
pub(super) fn types(problems: &mut Problems, keywords: &Map<String, Value>, path: &str) -> Types {
    let names: Vec<&str> = match keywords.get("type") {
        None => return Types::ANY,
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(_) => {
            problems.error(path, "`type` must be a string");
            return Types::ANY;
        }
    };
    let mut types: Option<Types> = None;
    // Null beside another type means an Option: absent, not null.
    for name in names.iter().filter(|name| **name != "null") {
        match Types::parse(name) {
            Some(one) => types = Some(types.map_or(one, |t| t.union(one))),
            None => problems.error(path, format_args!("unknown type `{name}`")),
        }
    }
    if types.is_none() && !names.is_empty() && names.iter().all(|n| *n == "null") {
        problems.error(
            path,
            "the unit type holds nothing and has no structural schema",
        );
    }
    types.unwrap_or_default()
}

/// The rules of keywords that all schemas have, of one form: bounds and sizes.
pub(super) fn bounds(keywords: &Map<String, Value>) -> Rules {
    let mut rules = Rules {
        minimum: number(keywords, "minimum"),
        maximum: number(keywords, "maximum"),
        multiple_of: number(keywords, "multipleOf"),
        min_length: size(keywords, "minLength"),
        max_length: size(keywords, "maxLength"),
        min_items: size(keywords, "minItems"),
        max_items: size(keywords, "maxItems"),
        min_properties: size(keywords, "minProperties"),
        max_properties: size(keywords, "maxProperties"),
        ..Rules::default()
    };
    // In OpenAPI 3.0, exclusive bounds are flags for the inclusive ones.
    if flag(keywords, "exclusiveMinimum") {
        rules.exclusive_minimum = rules.minimum.take();
    }
    if flag(keywords, "exclusiveMaximum") {
        rules.exclusive_maximum = rules.maximum.take();
    }
    rules
}

/// The rules for a value of a compiled kind.
pub(super) fn rules(problems: &mut Problems, keywords: &Map<String, Value>, path: &str) -> Rules {
    let bounds = bounds(keywords);
    let exclusive_minimum = number(keywords, "exclusiveMinimum");
    let exclusive_maximum = number(keywords, "exclusiveMaximum");
    let mut rules = Rules {
        exclusive_minimum: exclusive_minimum.or(bounds.exclusive_minimum),
        exclusive_maximum: exclusive_maximum.or(bounds.exclusive_maximum),
        min_bytes: size(keywords, "x-apiloom-min-bytes"),
        max_bytes: size(keywords, "x-apiloom-max-bytes"),
        values: list(keywords, "enum")
            .filter(|value| !value.is_null())
            .cloned()
            .collect(),
        own: own_rules::read(keywords),
        unique: flag(keywords, "x-apiloom-unique") || flag(keywords, "uniqueItems"),
        required: flag(keywords, "x-apiloom-required"),
        forbidden: flag(keywords, "x-apiloom-forbidden"),
        requires: strings(keywords, "x-apiloom-requires"),
        conflicts: strings(keywords, "x-apiloom-conflicts"),
        ..bounds
    };
    if rules
        .multiple_of
        .as_ref()
        .and_then(Number::as_f64)
        .is_some_and(|step| step <= 0.0)
    {
        problems.error(path, "`multipleOf` must be greater than 0");
        rules.multiple_of = None;
    }
    if let Some(value) = keywords.get("const") {
        rules.values = vec![value.clone()];
    }
    if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str) {
        rules.pattern = pattern_of(problems, pattern, path);
    }
    if let Some(union) = keywords.get("x-apiloom-union") {
        rules.union = union_of(problems, union, keywords, path);
    }
    rules
}

/// A pattern; `None` if it is wrong.
pub(super) fn pattern_of(problems: &mut Problems, text: &str, path: &str) -> Option<Pattern> {
    match Pattern::new(text) {
        Ok(pattern) => Some(pattern),
        Err(reason) => {
            problems.error(
                path,
                format_args!("pattern `{text}` is not a regular expression: {reason}"),
            );
            None
        }
    }
}

/// A union of fields; `None` if it is wrong.
fn union_of(
    problems: &mut Problems,
    union: &Value,
    keywords: &Map<String, Value>,
    path: &str,
) -> Option<Union> {
    let Some(members) = union.get("members").and_then(Value::as_object) else {
        problems.error(path, "`x-apiloom-union` needs `members`");
        return None;
    };
    let properties = keywords.get("properties").and_then(Value::as_object);
    for name in members.keys() {
        if properties.is_none_or(|p| !p.contains_key(name)) {
            problems.error(path, format_args!("union member `{name}` is not a field"));
        }
    }
    let members = ordered(members, keywords).into_iter().map(|name| {
        let values = match &members[name] {
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
            value => vec![value.as_str().unwrap_or(name)],
        };
        let values = values.into_iter().map(str::to_owned).collect();
        (name.to_owned(), values)
    });
    Some(Union {
        discriminator: union
            .get("discriminator")
            .and_then(Value::as_str)
            .map(str::to_owned),
        members: members.collect(),
        allow_none: union
            .get("allowNone")
            .and_then(Value::as_bool)
            .unwrap_or(false),
        closed: false,
    })
}

/// Reports members of a union that no value of its tag selects.
pub(super) fn check_members(problems: &mut Problems, node: &Node, path: &str) {
    let Some(union) = &node.rules.union else {
        return;
    };
    let tag = union.discriminator.as_ref();
    let Some(tag) = tag.and_then(|name| node.property(name)) else {
        return;
    };
    let known = if tag.node.known_values.is_empty() {
        &tag.node.rules.values
    } else {
        &tag.node.known_values
    };
    if known.is_empty() {
        return;
    }
    for (member, values) in &union.members {
        for value in values.iter().filter(|value| !known.contains(&json!(value))) {
            problems.error(
                &join(path, member),
                format_args!(
                    "the tag `{}` has no value {value:?}, which would select this member",
                    tag.name
                ),
            );
        }
    }
}

/// Reads how lists and maps are compared and merged.
pub(super) fn topology(
    problems: &mut Problems,
    node: &mut Node,
    keywords: &Map<String, Value>,
    path: &str,
) {
    let keys: Vec<String> = list(keywords, "x-kubernetes-list-map-keys")
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    node.twins_allowed = flag(keywords, "x-apiloom-duplicates");
    node.list_type = match keywords
        .get("x-kubernetes-list-type")
        .and_then(Value::as_str)
    {
        None if flag(keywords, "uniqueItems") => {
            if node.items.as_ref().is_some_and(|items| is_scalar(items)) {
                Some(ListType::Set)
            } else {
                None
            }
        }
        None => None,
        Some("atomic") => Some(ListType::Atomic),
        Some("set") => Some(ListType::Set),
        Some("map") if keys.is_empty() => {
            problems.error(
                path,
                "a list of type map needs `x-kubernetes-list-map-keys`",
            );
            None
        }
        Some("map") => {
            for key in &keys {
                if node
                    .items
                    .as_ref()
                    .is_some_and(|items| items.property(key).is_none() && !items.is_open())
                {
                    problems.error(
                        path,
                        format_args!("list map key `{key}` is not a field of its items"),
                    );
                }
            }
            Some(ListType::Map(keys))
        }
        Some(other) => {
            problems.error(path, format_args!("unknown list type `{other}`"));
            None
        }
    };
    node.atomic_map = match keywords
        .get("x-kubernetes-map-type")
        .and_then(Value::as_str)
    {
        None => None,
        Some("atomic") => Some(true),
        Some("granular") => Some(false),
        Some(other) => {
            problems.error(path, format_args!("unknown map type `{other}`"));
            None
        }
    };
    node.patch = text(keywords, PATCH_STRATEGY).map(|strategy| {
        Box::new(PatchStrategy {
            strategy,
            merge_key: text(keywords, PATCH_MERGE_KEY),
        })
    });
}

fn is_scalar(node: &Node) -> bool {
    node.properties.is_empty()
        && node.additional.is_none()
        && node.items.is_none()
        && !node.types.is_any()
        && !node.types.accepts(&Value::Object(Map::new()))
}
