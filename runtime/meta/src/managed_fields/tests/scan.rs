//! Comparisons of the JSON of `fieldsV1` answer as those of sets do, or "maybe".

use proptest::prelude::*;
use serde_json::json;

use super::documents::spec;
use super::{schema, set};
use crate::managed_fields::Ownership;
use crate::managed_fields::scan::{has_all, is_untouched};

proptest! {
    #[test]
    fn fields_that_are_untouched_share_nothing_with_a_change(a in spec(), b in spec(), c in spec()) {
        let schema = schema();
        let fields = Ownership::of(&schema).present_fields(&a);
        let changes = Ownership::of(&schema).changed_fields(&b, &c);
        if is_untouched(&fields.to_json(), changes.sets(), &schema) {
            for changed in changes.sets() {
                prop_assert!(fields.intersection(changed).is_empty());
            }
            prop_assert_eq!(Ownership::of(&schema).reconciled_fields(&fields), None);
        }
        // Two documents that have no field in common are told apart.
        let others = |document: &serde_json::Value| {
            let fields = document["spec"].as_object().unwrap();
            fields.keys().all(|name| a["spec"].get(name).is_none())
        };
        if others(&b) && others(&c) {
            prop_assert!(is_untouched(&fields.to_json(), changes.sets(), &schema));
        }
    }

    #[test]
    fn members_are_counted_as_in_sets(a in spec(), b in spec()) {
        let [all, some] = [&a, &b].map(|document| Ownership::of(&schema()).present_fields(document));
        prop_assert_eq!(has_all(&all.to_json(), &some), some.is_subset(&all));
        let both = all.intersection(&some);
        prop_assert!(has_all(&all.to_json(), &both));
        let named = Ownership::of(&schema()).with_named_fields(&some);
        prop_assert_eq!(has_all(&all.to_json(), &named), named.is_subset(&all));
    }
}

#[track_caller]
fn check(json: &str, changed: serde_json::Value, expected: bool) {
    let changed = set(changed);
    assert_eq!(
        is_untouched(json, [&changed], &schema()),
        expected,
        "{json}"
    );
}

#[test]
fn items_and_names_with_escapes_are_compared() {
    let port = |port: i64| format!(r#"k:{{"port":{port},"protocol":"TCP"}}"#);
    let owned = set(json!({"f:spec": {"f:ports": {port(80): {".": {}, "f:name": {}}}}})).to_json();
    let change = |number| json!({"f:spec": {"f:ports": {port(number): {"f:name": {}}}}});
    check(&owned, change(80), false);
    check(&owned, change(81), true);
    let owned = r#"{"f:spec":{"f:labels":{"f:a\u003cb":{},"f:c":{}}}}"#;
    check(owned, json!({"f:spec": {"f:labels": {"f:a<b": {}}}}), false);
    check(owned, json!({"f:spec": {"f:labels": {"f:a": {}}}}), true);
    assert!(has_all(
        owned,
        &set(json!({"f:spec": {"f:labels": {"f:a<b": {}}}}))
    ));
}

#[test]
fn a_key_that_comes_twice_is_not_two_members() {
    let labels = |names: &[&str]| {
        let names: serde_json::Map<_, _> = names
            .iter()
            .map(|name| (format!("f:{name}"), json!({})))
            .collect();
        set(json!({"f:spec": {"f:labels": names}}))
    };
    for owned in [
        r#"{"f:spec":{"f:labels":{"f:a":{},"f:a":{}}}}"#,
        r#"{"f:spec":{"f:labels":{"f:a":{},"f:\u0061":{}}}}"#,
        r#"{"f:spec":{"f:labels":{"f:a":{}},"f:labels":{"f:a":{}}}}"#,
        r#"{"f:spec":{"f:labels":{"f:a":{},"f:b":{}},"f:labels":{"f:a":{}}}}"#,
        r#"{"f:spec":{"f:labels":{"f:b":{}}},"f:spec":{"f:labels":{"f:a":{}}}}"#,
    ] {
        assert!(!has_all(owned, &labels(&["a", "b"])), "{owned}");
    }
    let owned = r#"{"f:spec":{"f:labels":{"f:a":{},"f:b":{},"f:c":{},"f:c":{}}}}"#;
    assert!(has_all(owned, &labels(&["a", "b"])));
}

#[test]
fn fields_of_an_earlier_schema_are_read() {
    let change = || json!({"f:spec": {"f:size": {}}});
    for owned in [
        json!({"f:spec": {"f:point": {"f:x": {}}}}),
        json!({"f:spec": {"f:args": {"v:\"a\"": {}}}}),
    ] {
        let owned = set(owned);
        assert!(Ownership::of(&schema()).reconciled_fields(&owned).is_some());
        check(&owned.to_json(), change(), false);
    }
    check(r#"{"f:spec":{"f:tags":{"v:\"a\"":{}}}}"#, change(), true);
}

#[test]
fn what_is_no_json_of_fields_is_read_too() {
    let whole = r#"{"f:spec":{".":{},"f:labels":{"f:a":{}},"f:tags":{"v:\"a\"":{}}}}"#;
    let change = json!({"f:spec": {"f:size": {}}});
    check(whole, change.clone(), true);
    check("{}", change.clone(), true);
    for end in 0..whole.len() {
        check(&whole[..end], change.clone(), false);
        assert!(!has_all(
            &whole[..end],
            &set(json!({"f:spec": {"f:labels": {"f:a": {}}}}))
        ));
    }
    for odd in [
        "",
        "[]",
        "null",
        "{} ",
        r#"{"spec":{}}"#,
        r#"{"f:spec":[]}"#,
        r#"{"f:spec":{},}"#,
        r#"{"f:spec" :{}}"#,
    ] {
        check(odd, change.clone(), false);
    }
}
