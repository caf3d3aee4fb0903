//! Laws of changes, merges and removals, for any documents.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{merge_applied, schema};
use crate::managed_fields::{FieldSet, Ownership};

pub(super) fn spec() -> impl Strategy<Value = Value> {
    let ports = prop::collection::btree_map(0..4_i64, prop::option::of("[ab]"), 0..4);
    let ports = ports.prop_map(|ports| {
        let port = |(port, name): (i64, Option<String>)| match name {
            Some(name) => json!({"port": port, "name": name}),
            None => json!({"port": port}),
        };
        Value::Array(ports.into_iter().map(port).collect())
    });
    let free = prop_oneof![
        Just(json!({"a": 1})),
        Just(json!({"a": {"b": [1]}})),
        Just(json!({"c": "x"}))
    ];
    let fields = (
        prop::option::of((0..3_i64).prop_map(Value::from)),
        prop::option::of(prop::collection::btree_map("[ab]", "[xy]", 0..3).prop_map(|m| json!(m))),
        prop::option::of(
            Just(())
                .prop_flat_map(|()| (0..2_i64, 0..2_i64))
                .prop_map(|(x, y)| json!({"x": x, "y": y})),
        ),
        prop::option::of(ports),
        prop::option::of(prop::collection::btree_set("[abc]", 0..3).prop_map(|s| json!(s))),
        prop::option::of(prop::collection::vec("[ab]", 0..3).prop_map(|v| json!(v))),
        prop::option::of(free),
    );
    fields.prop_map(|(size, labels, point, ports, tags, args, free)| {
        let names = ["size", "labels", "point", "ports", "tags", "args", "free"];
        let values = [size, labels, point, ports, tags, args, free];
        let fields = names.into_iter().zip(values);
        let fields: Map<String, Value> = fields
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect();
        json!({"spec": fields})
    })
}

/// The document without nulls and empty containers, which no law is about.
fn compact(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), compact(value)));
            let kept: Map<String, Value> = fields.filter(|(_, value)| !value.is_null()).collect();
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        Value::Array(items) if items.is_empty() => Value::Null,
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn no_field_changes_in_two_ways(a in spec(), b in spec()) {
        let changes = Ownership::of(&schema()).changed_fields(&a, &b);
        prop_assert!(changes.removed.intersection(&changes.modified).is_empty());
        prop_assert!(changes.removed.intersection(&changes.added).is_empty());
        prop_assert!(changes.modified.intersection(&changes.added).is_empty());
        let back = Ownership::of(&schema()).changed_fields(&b, &a);
        prop_assert_eq!(&changes.added, &back.removed);
        prop_assert_eq!(&changes.modified, &back.modified);
    }

    #[test]
    fn an_applied_document_is_in_the_result(a in spec(), b in spec()) {
        let schema = schema();
        let merged = merge_applied(&a, &b);
        let applied = Ownership::of(&schema).present_fields(&b);
        let changes = Ownership::of(&schema).changed_fields(&b, &merged);
        // Nothing of the applied document is missing or different.
        let differs = changes.removed.union(&changes.modified);
        prop_assert!(differs.intersection(&applied).is_empty(), "{:?}", differs);
        prop_assert_eq!(&merge_applied(&merged, &b), &merged);
    }

    #[test]
    fn the_order_of_disjoint_documents_does_not_matter_to_their_fields(
        a in spec(), b in spec(), c in spec()
    ) {
        let schema = schema();
        let (of_b, of_c) = (Ownership::of(&schema).present_fields(&b), Ownership::of(&schema).present_fields(&c));
        prop_assume!(of_b.intersection(&of_c).is_empty());
        let one = merge_applied(&merge_applied(&a, &b), &c);
        let other = merge_applied(&merge_applied(&a, &c), &b);
        prop_assert_eq!(Ownership::of(&schema).present_fields(&one), Ownership::of(&schema).present_fields(&other));
        let changes = Ownership::of(&schema).changed_fields(&one, &other);
        prop_assert!(changes.modified.is_empty() && changes.added.is_empty(), "{:?}", changes);
    }

    #[test]
    fn what_is_removed_is_gone_and_the_rest_stays(a in spec(), b in spec()) {
        let schema = schema();
        let removed = Ownership::of(&schema).present_fields(&b);
        let rest = Ownership::of(&schema).without_fields(&a, &removed);
        let left = Ownership::of(&schema).present_fields(&compact(&rest));
        prop_assert!(left.intersection(&removed).is_empty());
        let all = Ownership::of(&schema).with_named_fields(&Ownership::of(&schema).present_fields(&a));
        let gone = Ownership::of(&schema).without_fields(&a, &all);
        prop_assert_eq!(compact(&gone), Value::Null);
    }

    #[test]
    fn what_a_manager_has_applied_is_extracted(a in spec(), b in spec()) {
        let schema = schema();
        let applied = Ownership::of(&schema).present_fields(&b);
        let part = Ownership::of(&schema).extract(&merge_applied(&a, &b), &applied).unwrap();
        prop_assert_eq!(&Ownership::of(&schema).present_fields(&part), &applied, "{}", part);
        prop_assert!(Ownership::of(&schema).changed_fields(&b, &part).modified.is_empty(), "{}", part);
        prop_assert!(Ownership::of(&schema).item_problems(&part).is_empty());
    }

    #[test]
    fn sets_are_read_as_they_were_written(a in spec()) {
        let fields = Ownership::of(&schema()).present_fields(&a);
        prop_assert_eq!(FieldSet::from_json(&fields.to_json()).unwrap(), fields);
    }
}
