//! JSON patches and merge patches, which need no schema.

use std::ops::Range;

use apiloom_schema::Hooks;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::processor_time;

impl Patch {
    /// Applies a patch that reads no schema.
    fn apply_to(&self, target: &mut Value) -> Result<(), PatchError> {
        let schema = Schema::from_json(&json!({}), &Hooks::default()).unwrap();
        self.apply(&schema, target)
    }
}

#[track_caller]
fn check(patch: Value, document: Value, expected: Value) {
    let mut target = document;
    Patch::parse_json(patch.to_string().as_bytes())
        .unwrap()
        .apply_to(&mut target)
        .unwrap_or_else(|why| panic!("{patch}: {why}"));
    assert_eq!(target, expected, "{patch}");
}

#[track_caller]
fn check_not_applicable(patch: Value, document: Value) -> String {
    let mut target = document.clone();
    let refused = Patch::parse_json(patch.to_string().as_bytes())
        .unwrap()
        .apply_to(&mut target);
    assert_eq!(
        target, document,
        "a patch that fails changes nothing: {patch}"
    );
    match refused {
        Err(PatchError::NotApplicable(why)) => why,
        other => panic!("{patch}: {other:?}"),
    }
}

#[track_caller]
fn check_malformed(patch: &str, why: &str) {
    assert_eq!(
        Patch::parse_json(patch.as_bytes()).unwrap_err().to_string(),
        format!("error decoding patch: {why}")
    );
}

#[track_caller]
fn check_merge(patch: Value, document: Value, expected: Value) {
    let mut target = document;
    Patch::parse_merge(patch.to_string().as_bytes())
        .unwrap()
        .apply_to(&mut target)
        .unwrap();
    assert_eq!(target, expected, "{patch}");
}

#[test]
fn every_operation_does_what_it_says() {
    let document = json!({"a": 1, "l": [1, 2], "o": {"x": 1}});
    check(json!([]), document.clone(), document.clone());
    check(
        json!([{"op": "add", "path": "/b", "value": 2}]),
        json!({"a": 1}),
        json!({"a": 1, "b": 2}),
    );
    check(
        json!([{"op": "add", "path": "/a", "value": null}]),
        json!({"a": 1}),
        json!({"a": null}),
    );
    check(
        json!([{"op": "add", "path": "/l/1", "value": 9}]),
        json!({"l": [1, 2]}),
        json!({"l": [1, 9, 2]}),
    );
    check(
        json!([{"op": "add", "path": "/l/-", "value": 9}]),
        json!({"l": [1, 2]}),
        json!({"l": [1, 2, 9]}),
    );
    check(
        json!([{"op": "remove", "path": "/o/x"}]),
        json!({"o": {"x": 1}}),
        json!({"o": {}}),
    );
    check(
        json!([{"op": "remove", "path": "/l/0"}]),
        json!({"l": [1, 2]}),
        json!({"l": [2]}),
    );
    check(
        json!([{"op": "replace", "path": "/a", "value": {"b": 1}}]),
        json!({"a": 1}),
        json!({"a": {"b": 1}}),
    );
    check(
        json!([{"op": "move", "from": "/a", "path": "/o/a"}]),
        json!({"a": 1, "o": {}}),
        json!({"o": {"a": 1}}),
    );
    check(
        json!([{"op": "copy", "from": "/o", "path": "/p"}]),
        json!({"o": {"x": 1}}),
        json!({"o": {"x": 1}, "p": {"x": 1}}),
    );
    check(
        json!([{"op": "test", "path": "/o", "value": {"x": 1}}]),
        document.clone(),
        document,
    );
}

#[test]
fn later_operations_see_the_earlier_ones() {
    let patch = json!([
        {"op": "add", "path": "/l", "value": []},
        {"op": "add", "path": "/l/-", "value": 1},
        {"op": "test", "path": "/l/0", "value": 1},
        {"op": "move", "from": "/l/0", "path": "/x"},
    ]);
    check(patch, json!({}), json!({"l": [], "x": 1}));
}

#[test]
fn tokens_are_unescaped() {
    check(
        json!([{"op": "add", "path": "/a~1b~0c", "value": 1}]),
        json!({}),
        json!({"a/b~c": 1}),
    );
    check(
        json!([{"op": "remove", "path": "/"}]),
        json!({"": 1, "a": 2}),
        json!({"a": 2}),
    );
}

#[test]
fn indices_below_zero_count_from_the_end() {
    let document = json!({"l": [1, 2, 3]});
    check(
        json!([{"op": "remove", "path": "/l/-1"}]),
        document.clone(),
        json!({"l": [1, 2]}),
    );
    check(
        json!([{"op": "replace", "path": "/l/-3", "value": 9}]),
        document.clone(),
        json!({"l": [9, 2, 3]}),
    );
    check(
        json!([{"op": "add", "path": "/l/-1", "value": 9}]),
        document.clone(),
        json!({"l": [1, 2, 3, 9]}),
    );
    check(
        json!([{"op": "add", "path": "/l/-2", "value": 9}]),
        document.clone(),
        json!({"l": [1, 2, 9, 3]}),
    );
    check(
        json!([{"op": "test", "path": "/l/-1", "value": 3}]),
        document.clone(),
        document.clone(),
    );
    check(
        json!([{"op": "copy", "from": "/l/-1", "path": "/l/0"}]),
        document.clone(),
        json!({"l": [3, 1, 2, 3]}),
    );
    check(
        json!([{"op": "add", "path": "/l/-1/x", "value": 9}]),
        json!({"l": [{}, {}]}),
        json!({"l": [{}, {"x": 9}]}),
    );
    check_not_applicable(json!([{"op": "remove", "path": "/l/-4"}]), document.clone());
    check_not_applicable(
        json!([{"op": "add", "path": "/l/-5", "value": 1}]),
        document,
    );
}

#[test]
fn what_does_not_fit_the_document_is_not_applicable() {
    let document = json!({"a": 1, "l": [1], "o": {}});
    for patch in [
        json!([{"op": "test", "path": "/a", "value": 2}]),
        json!([{"op": "test", "path": "/a", "value": "1"}]),
        json!([{"op": "test", "path": "/l/5", "value": null}]),
        json!([{"op": "test", "path": "/missing/x", "value": null}]),
        json!([{"op": "remove", "path": "/missing"}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "remove", "path": "/l/-"}]),
        json!([{"op": "replace", "path": "/missing/x", "value": 1}]),
        json!([{"op": "replace", "path": "/a/x", "value": 1}]),
        json!([{"op": "replace", "path": "/l/-", "value": 1}]),
        json!([{"op": "replace", "path": "/l/1", "value": 1}]),
        json!([{"op": "add", "path": "/missing/x", "value": 1}]),
        json!([{"op": "add", "path": "/a/x", "value": 1}]),
        json!([{"op": "add", "path": "/l/2", "value": 1}]),
        json!([{"op": "add", "path": "/l/x", "value": 1}]),
        json!([{"op": "add", "path": "/l/99999999999999999999", "value": 1}]),
        json!([{"op": "add", "path": "/l/-9223372036854775808", "value": 1}]),
        json!([{"op": "move", "from": "/missing", "path": "/x"}]),
        json!([{"op": "move", "from": "/o", "path": "/o/x"}]),
        json!([{"op": "copy", "from": "/missing/x", "path": "/x"}]),
        json!([{"op": "copy", "from": "", "path": "/x"}]),
        json!([{"op": "add", "path": "", "value": {}}]),
        json!([{"op": "add", "path": "x", "value": {}}]),
        json!([{"op": "add", "value": {}}]),
        json!([{"op": "move", "path": "/x"}]),
        json!([{"op": "other", "path": "/x"}]),
        json!([{"path": "/x"}]),
        json!([null]),
        json!([{"op": "add", "path": "/b", "value": 1}, {"op": "test", "path": "/a", "value": 2}]),
    ] {
        check_not_applicable(patch, document.clone());
    }
}

#[test]
fn replace_sets_a_missing_key_of_an_object() {
    check(
        json!([{"op": "replace", "path": "/a~1b", "value": 1}, {"op": "replace", "path": "/l/0/x", "value": null}]),
        json!({"l": [{}]}),
        json!({"l": [{"x": null}], "a/b": 1}),
    );
}

#[test]
fn a_missing_field_is_null_to_a_test() {
    check(
        json!([{"op": "test", "path": "/missing", "value": null}]),
        json!({}),
        json!({}),
    );
}

#[test]
fn what_is_missing_in_an_operation_or_where_it_copies_from_is_null() {
    check(
        json!([
            {"op": "add", "path": "/b"}, {"op": "copy", "from": "/missing", "path": "/c"},
            {"op": "replace", "path": "/a"}, {"op": "test", "path": "/missing"},
        ]),
        json!({"a": 1}),
        json!({"a": null, "b": null, "c": null}),
    );
}

#[test]
fn what_is_no_escape_in_a_path_stays() {
    check(
        json!([{"op": "add", "path": "/a~2b~1c~01", "value": 1}]),
        json!({}),
        json!({"a~2b/c~1": 1}),
    );
}

#[test]
fn a_test_compares_the_text_of_scalars() {
    let document = json!({"n": 1, "t": "<b>", "o": {"x": 1, "y": [1.5, null]}});
    for (value, is_held) in [
        (r#"{"path": "/n", "value": 1}"#, true),
        (r#"{"path": "/n", "value": 1.0}"#, false),
        (r#"{"path": "/n", "value": 1e0}"#, false),
        (r#"{"path": "/t", "value": "<b>"}"#, false),
        (r#"{"path": "/t", "value": "\u003cb\u003e"}"#, true),
        (
            r#"{"path": "/o", "value": { "y" : [ 1.5, null ], "x" : 1 }}"#,
            true,
        ),
        (
            r#"{"path": "/o", "value": {"y": [1.50, null], "x": 1}}"#,
            false,
        ),
        (r#"{"path": "/o", "value": {"y": [1.5, null]}}"#, false),
        (r#"{"path": "/o", "value": {"y": [1.5], "x": 1}}"#, false),
    ] {
        let patch = value.replacen('{', r#"[{"op": "test", "#, 1) + "]";
        let patch = Patch::parse_json(patch.as_bytes()).unwrap();
        assert_eq!(
            patch.apply_to(&mut document.clone()).is_ok(),
            is_held,
            "{value}"
        );
    }
}

#[test]
fn without_field_validation_types_matter_when_they_are_used() {
    let parsed = Patch::parse_json_freely(br#"[{"op": 1, "path": "/a"}]"#).unwrap();
    assert!(parsed.apply_to(&mut json!({"a": 1})).is_err());
    for (body, why) in [
        (
            "{}",
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
        (
            "[1]",
            "json: cannot unmarshal number into Go value of type jsonpatch.Operation",
        ),
    ] {
        let refused = Patch::parse_json_freely(body.as_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), why);
    }
    for body in ["null", "1", "{"] {
        let refused = Patch::parse_merge_freely(body.as_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), "Invalid JSON Patch");
    }
    assert!(Patch::parse_merge_freely(b"[1]").is_ok());
}

#[test]
fn the_whole_document_can_be_replaced_and_tested() {
    check(
        json!([{"op": "test", "path": "", "value": {"a": 1}}]),
        json!({"a": 1}),
        json!({"a": 1}),
    );
    check(
        json!([{"op": "replace", "path": "", "value": {"b": 1}}]),
        json!({"a": 1}),
        json!({"b": 1}),
    );
}

#[test]
fn a_document_that_is_no_patch_is_malformed() {
    check_malformed(
        "{}",
        "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
    );
    check_malformed(
        "\"x\"",
        "json: cannot unmarshal string into Go value of type []handlers.jsonPatchOp",
    );
    for (patch, why) in [
        ("[", "unexpected end of JSON input"),
        ("", "unexpected end of JSON input"),
        (
            "[5]",
            "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
        ),
        (
            r#"[{"op":"remove","path":1}]"#,
            "json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
        ),
        (
            r#"[{"op":["remove"],"path":"/a"}]"#,
            "json: cannot unmarshal array into Go struct field jsonPatchOp.op of type string",
        ),
    ] {
        let error = Patch::parse_json(patch.as_bytes()).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("error decoding patch: {why}")),
            "{patch}: {error}"
        );
    }
}

#[test]
fn ten_thousand_operations_are_the_limit() {
    let patch = |n: usize| {
        serde_json::to_vec(&vec![json!({"op": "add", "path": "/a", "value": 1}); n]).unwrap()
    };
    let mut target = json!({});
    Patch::parse_json(&patch(MAX_OPERATIONS))
        .unwrap()
        .apply_to(&mut target)
        .unwrap();
    let refused = Patch::parse_json(&patch(MAX_OPERATIONS + 1)).unwrap_err();
    assert_eq!(refused, PatchError::TooManyOperations(10_001));
    assert_eq!(
        refused.to_string(),
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn copies_may_not_grow_the_document_without_bound() {
    let doubling = vec![json!({"op": "copy", "from": "/a", "path": "/a/-"}); 40];
    let why = check_not_applicable(json!(doubling), json!({"a": ["x".repeat(100)]}));
    assert!(
        why.starts_with("Unable to complete the copy, the accumulated size increase of copy is "),
        "{why}"
    );
}

#[test]
fn a_patch_may_not_nest_the_document_without_bound() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
    check(
        json!([{"op": "add", "path": "/a", "value": nested(119)}]),
        json!({}),
        nested(120),
    );
    let why = check_not_applicable(
        json!([{"op": "add", "path": "/a", "value": nested(120)}]),
        json!({}),
    );
    assert_eq!(
        why,
        "the value would nest the document deeper than 120 levels"
    );
    let wrapping = vec![json!({"op": "copy", "from": "/a", "path": "/a/a"}); 1000];
    check_not_applicable(json!(wrapping), json!({"a": {}}));
}

#[test]
fn a_patch_may_not_shift_long_lists_without_bound() {
    let rotation = vec![json!({"op": "move", "from": "/l/0", "path": "/l/-"}); 2_000];
    let why = check_not_applicable(json!(rotation), json!({"l": vec![0; 50_000]}));
    assert_eq!(why, "the patch moves too much");
    check(
        json!(rotation),
        json!({"l": vec![0; 100]}),
        json!({"l": vec![0; 100]}),
    );
}

#[test]
fn merge_replaces_removes_and_recurses() {
    check_merge(json!({}), json!({"a": 1}), json!({"a": 1}));
    check_merge(
        json!({"a": {"x": 2}}),
        json!({"a": {"x": 1, "y": 1}}),
        json!({"a": {"x": 2, "y": 1}}),
    );
    check_merge(json!({"a": null}), json!({"a": 1, "b": 2}), json!({"b": 2}));
    check_merge(json!({"l": [3]}), json!({"l": [1, 2]}), json!({"l": [3]}));
    check_merge(
        json!({"a": {"b": {"c": null, "d": 1}}}),
        json!({}),
        json!({"a": {"b": {"d": 1}}}),
    );
    check_merge(
        json!({"a": {"b": 1}}),
        json!({"a": [1]}),
        json!({"a": {"b": 1}}),
    );
}

/// As in kube-apiserver, and beyond RFC 7386, what is new has no fields of null at any depth, those in lists included.
#[test]
fn a_merge_takes_nulls_out_of_what_is_new() {
    let new = json!([null, {"b": null, "c": [{"d": null, "e": 1}]}]);
    let without = json!([null, {"c": [{"e": 1}]}]);
    check_merge(json!({"a": new}), json!({}), json!({"a": without}));
    check_merge(json!({"a": new}), json!({"a": null}), json!({"a": without}));
    check_merge(json!({"a": new}), json!({"a": [1]}), json!({"a": without}));
    check_merge(
        json!({"a": {"b": new}}),
        json!({"a": 1}),
        json!({"a": {"b": without}}),
    );
    // An object that is replaced by a list is the exception.
    check_merge(json!({"a": new}), json!({"a": {"x": 1}}), json!({"a": new}));
}

/// Few new fields are inserted among many, and of many the object is built again.
#[test]
fn new_fields_are_merged_with_those_that_are_there() {
    let object = |numbers: Range<usize>, value: &dyn Fn(usize) -> Value| -> Value {
        let named = numbers.map(|number| (format!("k{number:03}"), value(number)));
        Value::Object(named.collect())
    };
    for present in [50..51, 50..100, 50..200] {
        let document = object(present.clone(), &|_| json!({"x": 1}));
        let patch = object(0..100, &|_| json!({"y": 2, "z": null}));
        let expected = object(0..present.end.max(100), &|number| match (
            present.contains(&number),
            number < 100,
        ) {
            (true, true) => json!({"x": 1, "y": 2}),
            (true, false) => json!({"x": 1}),
            (false, _) => json!({"y": 2}),
        });
        check_merge(patch, document, expected);
    }
}

#[test]
fn a_merge_patch_is_an_object() {
    for (patch, why) in [
        (
            "[]",
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        ("{", "unexpected end of JSON input"),
    ] {
        let refused = Patch::parse_merge(patch.as_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), format!("error decoding patch: {why}"));
    }
    let refused = Patch::parse_merge(b"null").unwrap_err();
    assert_eq!(refused.to_string(), "Invalid JSON Patch");
}

#[test]
fn what_a_patch_says_twice_or_in_vain_is_noted() {
    let check = |patch: Result<Patch, PatchError>, expected: &[&str]| {
        assert_eq!(patch.unwrap().strict(), expected);
    };
    let json = |text: &str| Patch::parse_json(text.as_bytes());
    let merge = |text: &str| Patch::parse_merge(text.as_bytes());
    check(
        json(
            r#"[{"op":"add","path":"/a","value":{"k":1,"k":null},"foo":1},{"op":"test","path":"/b","path":"/a","value":null}]"#,
        ),
        &[
            r#"json patch duplicate field "[0].value.k""#,
            r#"json patch unknown field "[0].foo""#,
            r#"json patch duplicate field "[1].path""#,
        ],
    );
    check(json(r#"[{"op":"remove","path":"/a"}]"#), &[]);
    check(
        merge(r#"{"spec":{"x":1,"y":[{"z":1,"z":2}],"x":null},"unknown":1}"#),
        &[
            r#"duplicate field "spec.y[0].z""#,
            r#"duplicate field "spec.x""#,
        ],
    );
    check(merge(r#"{"spec":null}"#), &[]);
}

#[test]
fn of_duplicates_the_last_one_counts() {
    let mut target = json!({});
    let patch = r#"[{"op":"add","path":"/a","path":"/b","value":1,"value":null}]"#;
    let patch = Patch::parse_json(patch.as_bytes()).unwrap();
    patch.apply_to(&mut target).unwrap();
    assert_eq!(target, json!({"b": null}));
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i8>().prop_map(Value::from),
        "[ab]?".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abl0]", inner, 0..3)
                .prop_map(|m| m.into_iter().collect::<Value>()),
        ]
    })
}

/// An operation with random paths whose tokens match this pattern.
fn operation(token: &str) -> impl Strategy<Value = Value> {
    let path = || prop::string::string_regex(&format!("(/{token}){{0,3}}")).unwrap();
    let op = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
    (op, path(), path(), document()).prop_map(
        |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
    )
}

proptest! {
    #[test]
    fn any_patch_applies_whole_or_not_at_all(target in document(), operations in prop::collection::vec(operation("([abl]|-|-?[0-3])"), 0..6)) {
        let patch = Patch::parse_json(json!(operations).to_string().as_bytes()).unwrap();
        let mut patched = target.clone();
        if patch.apply_to(&mut patched).is_err() {
            prop_assert_eq!(patched, target);
        }
    }

    /// Within RFC 6902, and but for the path of the whole document, the operations agree with another implementation.
    #[test]
    fn plain_operations_are_those_of_the_rfc(target in document(), operations in prop::collection::vec(operation("[abl0-3]"), 0..4)) {
        prop_assume!(operations.iter().all(|operation| operation["path"] != "" && operation["from"] != ""));
        let text = json!(operations).to_string();
        let reference: json_patch::Patch = serde_json::from_str(&text).unwrap();
        let mut expected = target.clone();
        if json_patch::patch_unsafe(&mut expected, &reference).is_ok() {
            let mut patched = target;
            Patch::parse_json(text.as_bytes()).unwrap().apply_to(&mut patched).unwrap();
            prop_assert_eq!(patched, expected);
        }
    }

    #[test]
    fn any_body_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = Patch::parse_json(&body);
        let _ = Patch::parse_merge(&body);
        let _ = Patch::parse_strategic(&body);
    }
}

#[test]
fn patches_that_may_touch_managed_fields_are_known() {
    let json = |operation: &str| Patch::parse_json(format!("[{operation}]").as_bytes()).unwrap();
    let merge = |patch: &str| Patch::parse_merge(patch.as_bytes()).unwrap();
    let strategic = |patch: &str| Patch::parse_strategic(patch.as_bytes()).unwrap();
    for touching in [
        json(r#"{"op":"remove","path":"/metadata/managedFields"}"#),
        json(r#"{"op":"test","path":"/metadata/managedFields/0/fieldsV1/f:spec","value":{}}"#),
        json(r#"{"op":"replace","path":"/metadata","value":{}}"#),
        json(r#"{"op":"replace","path":"","value":{}}"#),
        json(r#"{"op":"copy","path":"/spec/a","from":"/metadata"}"#),
        json(r#"{"op":"move","path":"/spec/a","from":"/metadata/managedFields/0"}"#),
        merge(r#"{"metadata":{"managedFields":null}}"#),
        merge(r#"{"metadata":null}"#),
        strategic(r#"{"metadata":{"managedFields":[]}}"#),
        strategic(r#"{"metadata":{"$patch":"replace"}}"#),
        strategic(r#"{"$patch":"replace"}"#),
    ] {
        assert!(touching.may_touch_managed_fields(), "{touching:?}");
    }
    for apart in [
        json(r#"{"op":"add","path":"/metadata/labels/managedFields","value":"a"}"#),
        json(r#"{"op":"copy","path":"/spec/a","from":"/spec/metadata"}"#),
        merge(r#"{"metadata":{"labels":{"a":"b"}},"managedFields":1}"#),
        merge(r#"{"spec":null}"#),
        strategic(r#"{"metadata":{"labels":{"a":"b"}}}"#),
        strategic("{}"),
    ] {
        assert!(!apart.may_touch_managed_fields(), "{apart:?}");
    }
}

/// The text of each value was read once for each level above it.
#[test]
fn a_test_of_a_deep_value_reads_its_text_once() {
    let text = "x".repeat(1 << 20);
    let took = |levels: usize| {
        let value = (0..levels).fold(json!(text), |inner, _| json!({"a": inner}));
        let patch = json!([{"op": "test", "path": "/v", "value": value}]).to_string();
        let mut document = json!({"v": value});
        processor_time::least(|| {
            let patch = Patch::parse_json(patch.as_bytes()).unwrap();
            patch.apply_to(&mut document).unwrap();
        })
    };
    let (flat, deep) = (took(1), took(110));
    assert!(
        deep < 4 * flat,
        "110 levels take {deep} ns, one takes {flat} ns"
    );
}
