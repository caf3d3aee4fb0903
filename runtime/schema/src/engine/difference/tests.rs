//! Differences of two documents and their application to a third.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::hooks::Hooks;

#[allow(
    clippy::needless_pass_by_value,
    reason = "documents read better at the call as what `json!` gives"
)]
#[track_caller]
fn check(mut document: Value, before: Value, after: Value, expected: Value) {
    merge_value(None, &mut document, &before, after);
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

#[track_caller]
fn check_by_schema(document: Value, before: Value, after: Value, expected: Value) {
    let mut merged = document;
    merge_value(Some(shop_schema().root()), &mut merged, &before, after);
    assert_eq!(merged, expected);
}

fn shop_schema() -> Schema {
    let schema = json!({"type": "object", "properties": {
        "shelves": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
            "items": {"type": "object", "required": ["id"], "properties": {
                "id": {"type": "string"}, "a": {"type": "integer"}, "u0": {"type": "integer"}}}},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "steps": {"type": "array", "items": {"type": "string"}},
        "prices": {"type": "object", "additionalProperties": {"type": "integer"}},
        "pay": {"type": "object", "x-apiloom-union": {"members": {"cash": "cash", "card": "card"}},
            "properties": {
                "cash": {"type": "object", "properties": {"a": {"type": "integer"}, "u0": {"type": "integer"}}},
                "card": {"type": "object", "properties": {"a": {"type": "integer"}}}}}}});
    Schema::from_json(&schema, &Hooks::default()).expect("structural")
}

#[test]
fn items_with_keys_are_told_apart_by_them_alone() {
    let document = json!({"shelves": [{"id": "p", "a": 1, "u0": 9}, {"id": "q", "a": 1, "u0": 8}]});
    let before = json!({"shelves": [{"id": "p", "a": 1}, {"id": "q", "a": 1}]});
    for (after, expected) in [
        (
            json!([{"id": "q", "a": 2}, {"id": "r"}]),
            json!([{"id": "q", "a": 2, "u0": 8}, {"id": "r"}]),
        ),
        (json!([{"id": "q"}]), json!([{"id": "q", "u0": 8}])),
    ] {
        check_by_schema(
            document.clone(),
            before.clone(),
            json!({ "shelves": after }),
            json!({ "shelves": expected }),
        );
    }
    check_by_schema(document, before, json!({}), json!({}));
}

#[test]
fn entries_that_the_view_does_not_show_stay() {
    let document = json!({"shelves": [{"id": "x"}, {"id": "p"}], "tags": ["x", "p"], "prices": {"x": 1, "p": 2}});
    let before = json!({"shelves": [{"id": "p"}], "tags": ["p"], "prices": {"p": 2}});
    check_by_schema(
        document.clone(),
        before.clone(),
        json!({"shelves": [{"id": "p"}, {"id": "q"}], "tags": ["q"], "prices": {"p": 3, "q": 1}}),
        json!({"shelves": [{"id": "p"}, {"id": "q"}, {"id": "x"}], "tags": ["q", "x"],
            "prices": {"x": 1, "p": 3, "q": 1}}),
    );
    let hidden = json!({"shelves": [{"id": "x"}], "tags": ["x"], "prices": {"x": 1}});
    check_by_schema(document, before.clone(), json!({}), hidden.clone());
    check_by_schema(
        hidden,
        json!({}),
        before,
        json!({"shelves": [{"id": "p"}, {"id": "x"}], "tags": ["p", "x"], "prices": {"x": 1, "p": 2}}),
    );
}

#[test]
fn a_list_without_keys_of_which_the_view_shows_a_part_is_one_value() {
    let document = json!({"steps": ["p", "x"]});
    let before = json!({"steps": ["p"]});
    check_by_schema(
        document.clone(),
        before.clone(),
        before.clone(),
        document.clone(),
    );
    check_by_schema(
        document,
        before,
        json!({"steps": ["q"]}),
        json!({"steps": ["q"]}),
    );
}

#[test]
fn what_the_view_shows_otherwise_stays_where_it_is_not_changed() {
    check_by_schema(
        json!({"tags": ["exact", "p"], "steps": ["exact", "p"]}),
        json!({"tags": ["about", "p"], "steps": ["about", "p"]}),
        json!({"tags": ["about", "q"], "steps": ["p", "about"]}),
        json!({"tags": ["exact", "q"], "steps": ["p", "exact"]}),
    );
}

#[test]
fn another_member_of_a_union_takes_the_place_of_one_that_the_view_does_not_show() {
    let document = json!({"pay": {"cash": {"a": 1, "u0": 9}}});
    check_by_schema(
        document.clone(),
        json!({"pay": {}}),
        json!({"pay": {"card": {"a": 2}}}),
        json!({"pay": {"card": {"a": 2}}}),
    );
    check_by_schema(
        document,
        json!({"pay": {"cash": {"a": 1}}}),
        json!({"pay": {"cash": {"a": 2}}}),
        json!({"pay": {"cash": {"a": 2, "u0": 9}}}),
    );
}

#[test]
fn another_variant_of_an_enum_takes_the_place_of_one_that_the_view_does_not_show() {
    let variant = |name: &str| json!({"type": "object", "required": [name], "properties": {name: {"type": "integer"}}});
    let fields =
        json!({"p": {"type": "integer"}, "x": {"type": "integer"}, "other": {"type": "integer"}});
    let schema =
        json!({"type": "object", "properties": fields, "oneOf": [variant("p"), variant("x")]});
    let schema = Schema::from_json(&schema, &Hooks::default()).expect("structural");
    let mut merged = json!({"x": 1, "other": 2});
    let before = json!({});
    merge_value(Some(schema.root()), &mut merged, &before, json!({"p": 3}));
    assert_eq!(merged, json!({"p": 3, "other": 2}));
}

#[test]
fn a_default_that_the_client_sent_is_no_default() {
    let old = json!({"shelves": [{"id": "p"}, {"id": "q"}]});
    let defaulted = json!({"shelves": [{"id": "p", "a": 5}, {"id": "q", "a": 5}], "steps": ["d"], "tags": ["d"]});
    let sent = json!({"shelves": [{"id": "q", "a": 5}, {"id": "p"}], "steps": ["d"], "tags": null});
    let fields = |value: &Value| value.as_object().cloned().expect("an object");
    let mut merged = fields(&defaulted);
    shop_schema().remove_sent_defaults(&mut merged, &fields(&old), &fields(&sent));
    let expected = json!({"shelves": [{"id": "p", "a": 5}, {"id": "q"}], "tags": ["d"]});
    assert_eq!(Value::Object(merged), expected);
}

/// Random shops of that schema.
fn shop() -> impl Strategy<Value = Value> {
    let numbers = || prop::collection::vec(prop::option::of(0..3), 3);
    let ids = prop::sample::subsequence(vec!["p", "q", "r"], 0..=3).prop_shuffle();
    let shelves = (ids, numbers(), numbers()).prop_map(|(ids, seen, unseen)| {
        let shelves = ids.iter().zip(seen).zip(unseen);
        let shelf = |((id, a), u0): ((&&str, Option<i32>), Option<i32>)| {
            let mut shelf = json!({ "id": id });
            for (name, value) in [("a", a), ("u0", u0)] {
                if let Some(value) = value {
                    shelf[name] = json!(value);
                }
            }
            shelf
        };
        shelves.map(shelf).collect::<Value>()
    });
    let tags = prop::sample::subsequence(vec!["s", "t"], 0..=2).prop_shuffle();
    let member = prop::sample::select(vec!["cash", "card"]);
    let prices = prop::collection::btree_map("[kl]", 0..3, 0..3);
    (shelves, tags, member, 0..3, prices).prop_map(|(shelves, tags, member, a, prices)| {
        json!({"shelves": shelves, "tags": tags, "pay": {member: {"a": a}}, "prices": prices})
    })
}

/// Random documents in which every object may have unknown fields `u0`, `u1` and so on.
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

/// The view of a type without the fields `u..`.
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
    fn where_the_view_shows_all_the_document_becomes_what_comes_after(before in document(), after in document()) {
        let mut document = before.clone();
        merge_value(None, &mut document, &before, after.clone());
        prop_assert_eq!(document, after);
    }

    #[test]
    fn by_the_schema_too(before in shop(), after in shop()) {
        let mut document = before.clone();
        merge_value(Some(shop_schema().root()), &mut document, &before, after.clone());
        prop_assert_eq!(document, after);
    }

    #[test]
    fn by_the_schema_the_view_shows_what_was_changed_and_keys_keep_what_it_does_not_show(
        held in shop(),
        other in shop(),
    ) {
        let (before, after) = (seen(&held), seen(&other));
        let mut document = held.clone();
        merge_value(Some(shop_schema().root()), &mut document, &before, after.clone());
        prop_assert_eq!(seen(&document), after);
        let unseen = |shop: &Value, name: &str| {
            let items = shop["shelves"].as_array().into_iter().flatten();
            let mut items = items.filter(|item| item["id"] == name);
            items.next().map(|item| item["u0"].clone())
        };
        for name in ["p", "q", "r"] {
            if let (Some(before), Some(after)) = (unseen(&held, name), unseen(&document, name)) {
                prop_assert_eq!(before, after);
            }
        }
    }

    #[test]
    fn afterwards_the_type_sees_what_the_hook_left(held in document(), other in document()) {
        let (before, after) = (seen(&held), seen(&other));
        let mut document = held;
        merge_value(None, &mut document, &before, after.clone());
        prop_assert_eq!(seen(&document), after);
    }

    #[test]
    fn a_hook_that_changes_nothing_leaves_the_document_alone(held in document()) {
        let before = seen(&held);
        let mut document = held.clone();
        merge_value(None, &mut document, &before, before.clone());
        prop_assert_eq!(document, held);
    }
}
