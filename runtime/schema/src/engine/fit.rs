//! Reports rules that no value could violate, such as a number's bound on a string, or a map type on a list. The
//! author relies on such a rule, so it is an error when the server is built, instead of never being enforced.

use super::node::{ListType, Node, PatchStrategy, Types};
use super::own_rules;
use super::problems::Problems;

/// Reports the rules of a finished node that do not apply to its types.
pub(crate) fn check(problems: &mut Problems, node: &Node, path: &str) {
    if node.types.is_any() {
        return;
    }
    let rules = &node.rules;
    let numbers = Types::INTEGER.union(Types::NUMBER);
    let needs: [(&str, Types, bool); 22] = [
        ("minimum", numbers, rules.minimum.is_some()),
        ("maximum", numbers, rules.maximum.is_some()),
        (
            "exclusiveMinimum",
            numbers,
            rules.exclusive_minimum.is_some(),
        ),
        (
            "exclusiveMaximum",
            numbers,
            rules.exclusive_maximum.is_some(),
        ),
        ("multipleOf", numbers, rules.multiple_of.is_some()),
        ("a monotonic value", numbers, node.update.monotonic),
        ("minLength", Types::STRING, rules.min_length.is_some()),
        ("maxLength", Types::STRING, rules.max_length.is_some()),
        (
            "a least number of bytes",
            Types::STRING,
            rules.min_bytes.is_some(),
        ),
        (
            "a largest number of bytes",
            Types::STRING,
            rules.max_bytes.is_some(),
        ),
        ("pattern", Types::STRING, rules.pattern.is_some()),
        ("minItems", Types::ARRAY, rules.min_items.is_some()),
        ("maxItems", Types::ARRAY, rules.max_items.is_some()),
        ("uniqueItems", Types::ARRAY, rules.unique),
        (
            "a list type",
            Types::ARRAY,
            node.list_type
                .as_ref()
                .is_some_and(|t| *t != ListType::Atomic),
        ),
        ("duplicates", Types::ARRAY, node.twins_allowed),
        (
            "minProperties",
            Types::OBJECT,
            rules.min_properties.is_some(),
        ),
        (
            "maxProperties",
            Types::OBJECT,
            rules.max_properties.is_some(),
        ),
        ("a map type", Types::OBJECT, node.atomic_map.is_some()),
        ("propertyNames", Types::OBJECT, node.keys.is_some()),
        (
            "x-kubernetes-preserve-unknown-fields",
            Types::OBJECT.union(Types::ARRAY),
            node.preserve_unknown,
        ),
        (
            "x-kubernetes-embedded-resource",
            Types::OBJECT,
            node.embedded_resource,
        ),
    ];
    let own = own_rules::of(rules).filter(|(rule, _)| !rule.types.is_any());
    let own = own.map(|(rule, _)| (rule.keyword, rule.types, true));
    let needs = needs.into_iter().chain(own);
    for (rule, _, _) in needs.filter(|(_, types, said)| *said && !node.types.shares(*types)) {
        let types = node.types.names().join(" or ");
        problems.error(
            path,
            format_args!("{rule} means nothing for a value of type {types}"),
        );
    }
    identity(problems, node, path);
    let discriminator = rules
        .union
        .as_ref()
        .and_then(|union| union.discriminator.as_ref());
    let not_text = discriminator.filter(|name| {
        node.property(name)
            .is_some_and(|tag| !tag.node.types.takes(Types::STRING))
    });
    if let Some(name) = not_text {
        problems.error(
            path,
            format_args!("the tag `{name}` of the union is not a string"),
        );
    }
}

/// Checks that the keys of list items are scalars: other values cannot be part of a field path.
fn identity(problems: &mut Problems, list: &Node, path: &str) {
    let Some(items) = &list.items else { return };
    let composite =
        |node: &Node| !node.types.is_any() && node.types.shares(Types::OBJECT.union(Types::ARRAY));
    let is_keyless = |patch: &PatchStrategy| patch.merges() && patch.merge_key.is_none();
    if list.patch.as_deref().is_some_and(is_keyless) && composite(items) {
        problems.error(path, without_merge_key(list, items));
    }
    if list.twins_allowed && !matches!(list.list_type, Some(ListType::Set | ListType::Map(_))) {
        problems.error(
            path,
            "`duplicates` means nothing for a list whose items have no identity: write `list = set` or `list = map(key)`",
        );
    }
    match &list.list_type {
        Some(ListType::Set) if composite(items) => problems.error(
            path,
            "a set holds strings, numbers or booleans; tell items that are objects apart by `list = map(key)`",
        ),
        Some(ListType::Map(keys)) => {
            let composite = |key: &&String| items.property(key).is_some_and(|p| composite(&p.node));
            for key in keys.iter().filter(composite) {
                problems.error(path, format_args!("list map key `{key}` is no string, number or boolean"));
            }
        }
        _ => {}
    }
}

/// The error of a merged list of objects without a key, with one that can be written.
fn without_merge_key(list: &Node, items: &Node) -> String {
    const WANTED: [&str; 3] = ["name", "type", "key"];
    let composite = Types::OBJECT.union(Types::ARRAY);
    let is_scalar = |name: &str| {
        let types = items.property(name).map(|property| property.node.types);
        types.is_some_and(|types| !types.is_any() && !types.shares(composite))
    };
    let keys = match &list.list_type {
        Some(ListType::Map(keys)) => keys.as_slice(),
        _ => &[],
    };
    let required = items.properties.iter().filter(|p| p.required);
    let all = required.chain(&items.properties).map(|p| p.name.as_str());
    let mut candidates = keys.iter().map(String::as_str).chain(WANTED).chain(all);
    match candidates.find(|name| is_scalar(name)) {
        Some(key) => format!(
            "a merged list of objects needs the key of its items: write `patch(merge, key = ..)` with the field that is {key:?} in JSON"
        ),
        None => "a merged list of objects needs the key of its items, and these have no field that could be one: leave \
                 `patch(merge)` out"
            .to_owned(),
    }
}
