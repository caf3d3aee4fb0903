//! Updates: refused changes, values that are not validated again, and the correlation of list items.

use serde_json::json;

use super::*;

fn check(schema_json: &Value, cases: &[(Value, Value, &[&str])]) {
    let schema = schema(schema_json);
    for (old, new, expected) in cases {
        let found: Vec<String> = schema
            .validate_update(new, old)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, *expected, "{old} -> {new}");
    }
}

fn field(rules: &[&str], mut property: Value) -> Value {
    property["x-apiloom-update"] = json!(rules);
    json!({"type":"object","properties":{"p":property,"other":{"type":"string"}}})
}

const OK: &[&str] = &[];

#[test]
fn immutable_fields() {
    let text = |value: &str| format!("p: Invalid value: {value}: field is immutable");
    let (changed, removed) = (text("\"b\""), text("null"));
    check(
        &field(&["Immutable"], json!({"type":"string"})),
        &[
            (json!({"p":"a"}), json!({"p":"a","other":"x"}), OK),
            (json!({}), json!({"other":"x"}), OK),
            (json!({"p":"a"}), json!({"p":"b"}), &[changed.as_str()]),
            (json!({}), json!({"p":"b"}), &[changed.as_str()]),
            (json!({"p":"a"}), json!({}), &[removed.as_str()]),
        ],
    );
}

// As CEL rules in CRDs compare values.
#[test]
fn values_are_compared_as_their_schema_says() {
    let update = &["Immutable"];
    let refused = |value: &str| format!("p: Invalid value: {value}: field is immutable");
    let (half, order) = (refused("0.5"), refused("[1,0]"));
    let number = || json!({"type":"number"});
    check(
        &field(update, number()),
        &[
            (json!({"p":0}), json!({"p":0.0}), OK),
            (json!({"p":0}), json!({"p":-0.0}), OK),
            (json!({"p":0}), json!({"p":0.5}), &[half.as_str()]),
        ],
    );
    check(
        &field(update, json!({"type":"array","items":number()})),
        &[
            (json!({"p":[0,1]}), json!({"p":[0.0,1]}), OK),
            (json!({"p":[0,1]}), json!({"p":[1,0]}), &[order.as_str()]),
        ],
    );
    // The items of sets and of lists with keys have no order.
    check(
        &field(
            update,
            json!({"type":"array","items":number(),"x-kubernetes-list-type":"set"}),
        ),
        &[(json!({"p":[0,1]}), json!({"p":[1.0,0]}), OK)],
    );
    let set = json!({"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"});
    let item = json!({"type":"object","required":["k"],"properties":{"k":number(),"set":set}});
    let changed = refused(r#"[{"k":0,"set":["b"]}]"#);
    check(
        &field(
            update,
            json!({"type":"array","items":item,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}),
        ),
        &[
            (
                json!({"p":[{"k":0},{"k":1,"set":["a","b"]}]}),
                json!({"p":[{"k":1.0,"set":["b","a"]},{"k":0}]}),
                OK,
            ),
            (
                json!({"p":[{"k":0,"set":["a"]}]}),
                json!({"p":[{"k":0,"set":["b"]}]}),
                &[changed.as_str()],
            ),
        ],
    );
    let list = json!({"type":"array","items":number()});
    check(
        &field(&["NoAddItem", "NoRemoveItem"], list),
        &[(json!({"p":[0]}), json!({"p":[0.0]}), OK)],
    );
}

#[test]
fn single_transitions() {
    let string = json!({"type":"string"});
    let (unset, a, b) = (json!({}), json!({"p":"a"}), json!({"p":"b"}));
    for (rule, set, cleared, modified) in [
        (
            "NoSet",
            &["p: Invalid value: null: field cannot be set once created"][..],
            OK,
            OK,
        ),
        (
            "NoUnset",
            OK,
            &["p: Invalid value: null: field cannot be cleared once set"][..],
            OK,
        ),
        (
            "NoModify",
            OK,
            OK,
            &["p: Invalid value: null: field cannot be modified once set"][..],
        ),
    ] {
        check(
            &field(&[rule], string.clone()),
            &[
                (unset.clone(), a.clone(), set),
                (a.clone(), unset.clone(), cleared),
                (a.clone(), b.clone(), modified),
                (a.clone(), a.clone(), OK),
            ],
        );
    }
    check(
        &field(&["Monotonic"], json!({"type":"integer"})),
        &[
            (json!({"p":3}), json!({"p":4}), OK),
            (
                json!({"p":3}),
                json!({"p":2}),
                &["p: Invalid value: 2: may not be decreased from 3"],
            ),
        ],
    );
}

#[test]
fn items_that_may_not_come_or_go() {
    let both = &["NoAddItem", "NoRemoveItem"];
    check(
        &field(
            both,
            json!({"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}),
        ),
        &[(
            json!({"p":["a","b"]}),
            json!({"p":["b","c"]}),
            &[
                "p[1]: Forbidden: item may not be added",
                "p: Forbidden: item may not be removed",
            ],
        )],
    );
    check(
        &field(
            both,
            json!({"type":"object","additionalProperties":{"type":"string"}}),
        ),
        &[
            (json!({"p":{"a":"1"}}), json!({"p":{"a":"2"}}), OK),
            (
                json!({"p":{"a":"1"}}),
                json!({"p":{"b":"1"}}),
                &[
                    "p[b]: Forbidden: item may not be added",
                    "p[a]: Forbidden: item may not be removed",
                ],
            ),
        ],
    );
}

#[test]
fn list_items_continue_those_with_the_same_keys() {
    let item = json!({"type":"object","properties":{"name":{"type":"string"},"size":{"type":"integer","maximum":5,"x-apiloom-update":["Immutable"]}}});
    let schema = json!({"type":"object","properties":{"p":{"type":"array","items":item,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"]}}});
    check(
        &schema,
        &[
            (
                json!({"p":[{"name":"a","size":1},{"name":"b","size":2}]}),
                json!({"p":[{"name":"b","size":2},{"name":"a","size":1}]}),
                OK,
            ),
            (
                json!({"p":[{"name":"a","size":1}]}),
                json!({"p":[{"name":"b","size":2},{"name":"a","size":3}]}),
                &["p[1].size: Invalid value: 3: field is immutable"],
            ),
            // An old value that is too large is kept; a new one must be valid.
            (
                json!({"p":[{"name":"a","size":9}]}),
                json!({"p":[{"name":"c","size":9},{"name":"a","size":9}]}),
                &["p[0].size: Invalid value: 9: must be less than or equal to 5"],
            ),
        ],
    );
}

#[test]
fn what_did_not_change_is_not_judged_again() {
    let schema = json!({"type":"object","required":["added"],"properties":{"added":{"type":"string"},"size":{"type":"integer","maximum":5},
        "other":{"type":"string"},"in":{"type":"object","properties":{"x":{"type":"integer","maximum":1},"y":{"type":"integer","maximum":1}}}}});
    check(
        &schema,
        &[
            (json!({"size":9}), json!({"size":9,"other":"x"}), OK),
            (
                json!({"size":9}),
                json!({"size":8}),
                &["size: Invalid value: 8: must be less than or equal to 5"],
            ),
            (json!({"added":"x"}), json!({}), &["added: Required value"]),
            (
                json!({"in":{"x":2,"y":1}}),
                json!({"in":{"x":2,"y":3}}),
                &["in.y: Invalid value: 3: must be less than or equal to 1"],
            ),
        ],
    );
}

#[test]
fn unions_are_judged_again_when_membership_changes() {
    let schema = json!({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"other":{"type":"string"}},
        "x-apiloom-union":{"discriminator":null,"members":{"a":"a","b":"b"},"allowNone":false}});
    check(
        &schema,
        &[
            (json!({}), json!({"other":"x"}), OK),
            (
                json!({"a":"1"}),
                json!({"a":"1","b":"1"}),
                &["<nil>: Invalid value: \"{a, b}\": must specify exactly one of: `a`, `b`"],
            ),
        ],
    );
}
