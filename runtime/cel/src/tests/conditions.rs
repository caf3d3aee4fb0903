//! Conditions about several variables, of types that are known or not.

use serde_json::{Value as Json, json};

use crate::{Condition, Failure, MAX_CALL_COST, Variables};

/// An object of any kind, the one before, and a request of a schema with a field of any type.
fn variables() -> Variables {
    let request = json!({"type": "object", "properties": {
        "operation": {"type": "string"},
        "dryRun": {"type": "boolean"},
        "userInfo": {"type": "object", "properties": {
            "groups": {"type": "array", "items": {"type": "string"}},
            "extra": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}}}}});
    Variables::default()
        .any("object")
        .any("oldObject")
        .object("request", &request, &["options"])
}

fn values() -> [Json; 3] {
    [
        json!({"metadata": {"name": "a", "labels": {"x": "1"}, "big": 18_446_744_073_709_551_615_u64},
            "spec": {"replicas": 3, "ratio": 0.5, "none": null, "list": [1, "two", null, {"a": 1}]}}),
        Json::Null,
        json!({"operation": "CREATE", "dryRun": false, "options": {"fieldManager": "me"},
            "userInfo": {"groups": ["a", "b"], "extra": {"k": ["v"]}}}),
    ]
}

fn evaluate(text: &str, budget: &mut u64) -> Result<bool, Failure> {
    let condition = Condition::compile(text, &variables()).map_err(Failure::Evaluation)?;
    condition.is_true(&values().each_ref(), budget)
}

#[track_caller]
fn check(text: &str, expected: Result<bool, &str>) {
    let found = evaluate(text, &mut { u64::MAX });
    let found = found.as_ref().map_err(Failure::text).copied();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn conditions_see_values_of_any_form() {
    let all = [
        "object.metadata.name == 'a'",
        "object.metadata.labels['x'] == '1'",
        "has(object.spec.replicas) && !has(object.spec.other)",
        "object.spec.replicas + 1 == 4",
        "object.spec.ratio < 1.0",
        "object.spec.replicas < 3.5",
        "has(object.spec.none) && object.spec.none == null",
        "object.spec.list.size() == 4 && object.spec.list[1] == 'two'",
        "object.spec.list.exists(one, one == 1)",
        "object.spec.list[3].a == 1",
        "object.metadata.big == 18446744073709551615u",
        "object.spec != object.metadata",
        "object.spec.list[0] != object.spec.list[1]",
        "object.spec.list != 'text'",
        "object.?spec.?other.orValue(7) == 7",
        "oldObject == null",
        "type(object.spec.replicas) == int",
        "request.operation == 'CREATE' && !request.dryRun",
        "request.userInfo.groups.exists(group, group == 'b')",
        "request.userInfo.extra['k'][0] == 'v'",
        "request.options.fieldManager == 'me'",
        "dyn(1) == 1u",
    ];
    for text in all {
        check(text, Ok(true));
    }
    check("object.metadata.name == 'b'", Ok(false));
}

#[test]
fn a_condition_without_a_value_says_why() {
    let resulted = |text: &str, why: &str| format!("expression '{text}' resulted in error: {why}");
    for (text, why) in [
        ("object.other == 1", "no such key: other"),
        ("oldObject.spec == 1", "no such key: spec"),
        ("object.spec.replicas", "no such overload"),
        ("object.metadata.name + 1 == 2", "no such overload"),
    ] {
        if text == "object.spec.replicas" {
            check(text, Err("must evaluate to bool but got dyn"));
        } else {
            check(text, Err(&resulted(text, why)));
        }
    }
    check("'text'", Err("must evaluate to bool but got string"));
    for (text, part) in [
        ("self == 1", "undeclared reference to 'self'"),
        ("request.object == 1", "undefined field 'object'"),
        (
            "request.operation == 1",
            "found no matching overload for '_==_'",
        ),
        ("object.a ==", "Syntax error"),
    ] {
        let error = Condition::compile(text, &variables()).unwrap_err();
        assert!(error.starts_with("compilation failed: ERROR: "), "{error}");
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_cost_of_conditions_is_bounded_in_sum_and_each() {
    let list = json!(vec![1; 2_000]);
    let variables = Variables::default().any("object");
    let heavy = Condition::compile("object.all(a, object.all(b, a == b))", &variables).unwrap();
    let mut budget = 10 * MAX_CALL_COST;
    let found = heavy.is_true(&[&list], &mut budget);
    assert_eq!(
        found.unwrap_err().text(),
        "expression 'object.all(a, object.all(b, a == b))' resulted in error: operation cancelled: actual cost limit exceeded"
    );
    assert!(budget < 10 * MAX_CALL_COST, "{budget}");
    let light = Condition::compile("object.all(a, a == 1)", &variables).unwrap();
    let mut budget = 20_000;
    assert_eq!(light.is_true(&[&list], &mut budget), Ok(true));
    let spent = 20_000 - budget;
    assert!(spent > 2_000, "{spent}");
    while budget >= spent {
        assert_eq!(light.is_true(&[&list], &mut budget), Ok(true));
    }
    assert!(matches!(
        light.is_true(&[&list], &mut budget),
        Err(Failure::Cost(_))
    ));
    assert_eq!(budget, 0);
}

#[test]
fn a_value_that_is_not_given_is_null() {
    let condition = Condition::compile("oldObject == null", &variables()).unwrap();
    assert_eq!(condition.is_true(&[], &mut { u64::MAX }), Ok(true));
}
