//! Puts what a typed hook changed back into the document, so that nothing is lost that the type does not know.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

/// Fields by which people tell the items of a list apart, whatever else a hook changes in them.
const NAMES: [&str; 5] = ["name", "key", "type", "id", "uid"];

/// Makes in `document` the changes that lead from `before` to `after`, and no others.
pub fn merge_difference(
    document: &mut Map<String, Value>,
    before: &Map<String, Value>,
    after: Map<String, Value>,
) {
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        document.remove(name);
    }
    for (name, value) in after {
        match (before.get(&name), document.get_mut(&name)) {
            (Some(old), _) if *old == value => {}
            (Some(old), Some(target)) => merge_value(target, old, value),
            _ => {
                document.insert(name, value);
            }
        }
    }
}

fn merge_value(target: &mut Value, before: &Value, after: Value) {
    match (target, before, after) {
        (Value::Object(target), Value::Object(before), Value::Object(after)) => {
            merge_difference(target, before, after);
        }
        (Value::Array(target), Value::Array(before), Value::Array(after))
            if target.len() == before.len() =>
        {
            merge_items(target, before, after);
        }
        (target, _, after) => *target = after,
    }
}

/// Each new item takes with it what the document has of the old item that it continues; an item that continues none
/// comes as it is. No item ever gets what belonged to another.
fn merge_items(target: &mut Vec<Value>, before: &[Value], after: Vec<Value>) {
    let origins = origins(before, &after);
    let mut old: Vec<Value> = std::mem::take(target);
    target.extend(after.into_iter().zip(origins).map(|(item, origin)| {
        let Some(origin) = origin else { return item };
        let mut held = old[origin].take();
        if before[origin] != item {
            merge_value(&mut held, &before[origin], item);
        }
        held
    }));
}

/// Which old item each new one continues: the equal one, or else one of the same name, or else, where neither has a name
/// and none came or went, the one at its place.
fn origins(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let mut equal: HashMap<&Value, VecDeque<usize>> = HashMap::with_capacity(before.len());
    for (index, item) in before.iter().enumerate() {
        equal.entry(item).or_default().push_back(index);
    }
    let mut free = vec![true; before.len()];
    let mut take = |index: usize| {
        free[index] = false;
        index
    };
    let mut origins: Vec<Option<usize>> = after
        .iter()
        .map(|item| equal.get_mut(item)?.pop_front().map(&mut take))
        .collect();
    let mut named: HashMap<Vec<Option<&Value>>, VecDeque<usize>> = HashMap::new();
    for (index, item) in before.iter().enumerate().filter(|(index, _)| free[*index]) {
        named.entry(names(item)).or_default().push_back(index);
    }
    let same_length = before.len() == after.len();
    for (place, item) in after.iter().enumerate() {
        if origins[place].is_some() {
            continue;
        }
        let names = names(item);
        origins[place] = if names.iter().any(Option::is_some) {
            named.get_mut(&names).and_then(VecDeque::pop_front)
        } else {
            Some(place).filter(|place| {
                same_length && free[*place] && self::names(&before[*place]) == names
            })
        };
    }
    origins
}

fn names(item: &Value) -> Vec<Option<&Value>> {
    NAMES.iter().map(|name| item.get(name)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[allow(
        clippy::needless_pass_by_value,
        reason = "documents read better at the call as what `json!` gives"
    )]
    #[track_caller]
    fn check(mut document: Value, before: Value, after: Value, expected: Value) {
        merge_value(&mut document, &before, after);
        assert_eq!(document, expected);
    }

    #[test]
    fn unknown_fields_survive_a_change_beside_them() {
        check(
            json!({"a": 1, "x": 9}),
            json!({"a": 1}),
            json!({"a": 2}),
            json!({"a": 2, "x": 9}),
        );
    }

    #[test]
    fn unknown_fields_survive_inside_lists() {
        let document = json!([{"a": 1, "x": 9}, {"a": 2, "y": 9}]);
        let before = json!([{"a": 1}, {"a": 2}]);
        for (after, expected) in [
            (
                json!([{"a": 1}, {"a": 3}]),
                json!([{"a": 1, "x": 9}, {"a": 3, "y": 9}]),
            ),
            (
                json!([{"a": 2}, {"a": 1}]),
                json!([{"a": 2, "y": 9}, {"a": 1, "x": 9}]),
            ),
            (json!([{"a": 2}]), json!([{"a": 2, "y": 9}])),
            (
                json!([{"a": 1}, {"a": 2}, {"a": 3}]),
                json!([{"a": 1, "x": 9}, {"a": 2, "y": 9}, {"a": 3}]),
            ),
            (
                json!([{"a": 3}, {"a": 1}, {"a": 2}]),
                json!([{"a": 3}, {"a": 1, "x": 9}, {"a": 2, "y": 9}]),
            ),
            (json!([]), json!([])),
        ] {
            check(document.clone(), before.clone(), after, expected);
        }
    }

    #[test]
    fn what_belonged_to_a_removed_item_goes_to_no_other() {
        check(
            json!([{"a": 1, "x": 9}, {"a": 2}]),
            json!([{"a": 1}, {"a": 2}]),
            json!([{"a": 2}, {"a": 3}]),
            json!([{"a": 2}, {"a": 3}]),
        );
        check(
            json!([{"name": "p", "x": 9}]),
            json!([{"name": "p"}]),
            json!([{"name": "q"}]),
            json!([{"name": "q"}]),
        );
    }

    #[test]
    fn a_named_item_is_found_again_after_it_changed_and_moved() {
        check(
            json!([{"name": "p", "a": 1, "x": 9}]),
            json!([{"name": "p", "a": 1}]),
            json!([{"name": "q", "a": 1}, {"name": "p", "a": 2}]),
            json!([{"name": "q", "a": 1}, {"name": "p", "a": 2, "x": 9}]),
        );
    }

    #[test]
    fn equal_items_are_continued_one_each() {
        check(
            json!(["a", "a"]),
            json!(["a", "a"]),
            json!(["a", "a", "a"]),
            json!(["a", "a", "a"]),
        );
    }

    #[test]
    fn what_a_hook_unsets_goes() {
        check(
            json!({"a": 1, "b": 2}),
            json!({"a": 1, "b": 2}),
            json!({"b": 2}),
            json!({"b": 2}),
        );
    }

    #[test]
    fn what_a_hook_sets_comes() {
        check(
            json!({}),
            json!({}),
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 1}}),
        );
    }

    /// Documents in which every object may have fields `u0`.. that no type knows.
    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i8>().prop_map(Value::from),
            "[a-c]{1,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("(name|a|b|c|u0|u1)", inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// What a type that does not know the fields `u..` sees.
    fn seen(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(seen).collect(),
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .filter(|(name, _)| !name.starts_with('u'))
                    .map(|(name, value)| (name.clone(), seen(value)))
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn afterwards_the_type_sees_what_the_hook_left(held in document(), other in document()) {
            let (before, after) = (seen(&held), seen(&other));
            let mut document = held;
            merge_value(&mut document, &before, after.clone());
            prop_assert_eq!(seen(&document), after);
        }

        #[test]
        fn a_hook_that_changes_nothing_leaves_the_document_alone(held in document()) {
            let before = seen(&held);
            let mut document = held.clone();
            merge_value(&mut document, &before, before.clone());
            prop_assert_eq!(document, held);
        }
    }
}
