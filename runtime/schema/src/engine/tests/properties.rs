//! Defaults, pruning and hooks; and properties of all documents.

use proptest::prelude::*;
use serde_json::json;

use super::strategies::{any_json, any_schema, sample_schema};
use super::*;
use crate::field::{FieldError, FieldPath};

fn sample() -> Schema {
    schema(&sample_schema())
}

#[test]
fn defaults_reach_into_lists_and_maps_and_make_no_parents() {
    let schema = sample();
    let mut document = json!({"list":[{},{"p":"UDP"}],"map":{"k":{}},"nil":null,"a":null});
    schema.default(&mut document);
    let expected = json!({"a":"x","nil":null,"made":{"y":8},"list":[{"p":"TCP"},{"p":"UDP"}],"map":{"k":{"p":"TCP"}}});
    assert_eq!(document, expected);
}

#[test]
fn a_list_may_take_duplicates_and_keep_unknown_fields() {
    let item = json!({"type":"object","properties":{"name":{"type":"string"}}});
    let list = json!({"type":"array","items":item,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"]});
    let mut free = list.clone();
    free["x-apiloom-duplicates"] = true.into();
    let open = json!({"type":"array","items":{"type":"array","items":item},"x-kubernetes-preserve-unknown-fields":true});
    let schema = schema(
        &json!({"type":"object","properties":{"list":list,"free":free,"open":open,"closed":{"type":"array","items":item}}}),
    );
    let twins = json!([{"name":"a"},{"name":"a"}]);
    let errors = schema.validate(&json!({"list": twins, "free": twins}));
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(shown, [r#"list[1]: Duplicate value: {"name":"a"}"#]);

    let mut document = json!({"open": [[{"b": 1}]], "closed": [{"b": 1}]});
    schema.prune(&mut document);
    assert_eq!(document, json!({"open": [[{"b": 1}]], "closed": [{}]}));
    // It is said where it was said.
    let printed = &schema.to_crd().schema["properties"]["open"];
    assert_eq!(printed["x-kubernetes-preserve-unknown-fields"], true);
    assert!(
        !printed["items"].to_string().contains("preserve"),
        "{printed}"
    );
}

#[test]
fn an_object_stored_before_a_default_was_added_gets_it() {
    let old = schema(
        &json!({"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}}}}}),
    );
    let new = schema(
        &json!({"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer","x-apiloom-default":1}}}}}),
    );
    let mut stored = json!({"spec":{"a":"x"}});
    old.default(&mut stored);
    assert_eq!(stored, json!({"spec":{"a":"x"}}));
    new.default(&mut stored);
    assert_eq!(stored, json!({"spec":{"a":"x","b":1}}));
}

#[test]
fn unknown_fields_and_nulls_are_pruned() {
    let schema = sample();
    let mut document = json!({"a":null,"nil":null,"bogus":1,"in":{"y":1,"z":2},"list":[{"p":"x","q":1}],"map":{"k":{"q":1}},"free":{"any":{"thing":null}}});
    schema.prune(&mut document);
    assert_eq!(
        document,
        json!({"nil":null,"in":{"y":1},"list":[{"p":"x"}],"map":{"k":{}},"free":{"any":{"thing":null}}})
    );
}

#[test]
fn hooks_run_at_their_place_when_the_value_is_well_formed() {
    fn positive(value: &Value, path: &FieldPath) -> Vec<FieldError> {
        if value["p"] == "bad" {
            vec![FieldError::invalid(&path.child("p"), "bad", "must be good")]
        } else {
            Vec::new()
        }
    }
    fn from_size(parent: &Value) -> Option<Value> {
        parent.get("n").map(|n| json!(format!("size {n}")))
    }
    let item = Hooks {
        checks: vec![positive],
        ..Hooks::default()
    };
    let list = Hooks {
        items: Some(Box::new(item)),
        ..Hooks::default()
    };
    let hooks = Hooks {
        fields: vec![("list", list.clone()), ("map", list)],
        defaults: vec![("label", from_size)],
        ..Hooks::default()
    };
    let schema_json = json!({"type":"object","properties":{"n":{"type":"integer"},"label":{"type":"string"},
        "list":{"type":"array","items":{"type":"object","properties":{"p":{"type":"string"}}}},
        "map":{"type":"object","additionalProperties":{"type":"object","properties":{"p":{"type":"string"}}}}}});
    let schema = Schema::from_json(&schema_json, &hooks).expect("structural");
    let document = json!({"list":[{"p":"ok"},{"p":"bad"},{"p":1}],"map":{"k":{"p":"bad"}}});
    let expected = [
        r#"list[1].p: Invalid value: "bad": must be good"#,
        r#"list[2].p: Invalid value: "integer": list[2].p in body must be of type string: "integer""#,
        r#"map[k].p: Invalid value: "bad": must be good"#,
    ];
    assert_eq!(errors(&schema, &document), expected);
    let mut document = json!({"n":3});
    schema.default(&mut document);
    assert_eq!(document, json!({"n":3,"label":"size 3"}));
    let mut given = json!({"n":3,"label":"own"});
    schema.default(&mut given);
    assert_eq!(given["label"], "own");
    let mut nothing = json!({});
    schema.default(&mut nothing);
    assert_eq!(nothing, json!({}));

    let lost = Hooks {
        fields: vec![(
            "nowhere",
            Hooks {
                checks: vec![positive],
                ..Hooks::default()
            },
        )],
        ..Hooks::default()
    };
    let errors = Schema::from_json(&schema_json, &lost).expect_err("refused");
    assert_eq!(
        errors.0,
        ["there are checks for `nowhere`, which is not a field"]
    );
}

proptest! {
    #[test]
    fn no_schema_makes_the_engine_panic(json in any_schema(), document in any_json()) {
        for source in [super::super::build::SchemaOrigin::Types, super::super::build::SchemaOrigin::Document] {
            let Ok(schema) = Schema::build(&json, source, &Hooks::default(), false) else { continue };
            let mut value = document.clone();
            schema.default(&mut value);
            schema.prune(&mut value);
            let _ = schema.validate(&value);
            let _ = schema.validate_update(&value, &document);
            let _ = schema.to_openapi(&Metadata::Inline);
            let _ = schema.to_openapi_v2(&Metadata::Inline);
        }
    }

    #[test]
    fn pruning_and_defaulting_are_idempotent(document in any_json()) {
        let schema = sample();
        let mut once = document.clone();
        schema.prune(&mut once);
        let mut twice = once.clone();
        schema.prune(&mut twice);
        prop_assert_eq!(&once, &twice);
        schema.default(&mut once);
        let mut twice = once.clone();
        schema.default(&mut twice);
        prop_assert_eq!(&once, &twice);
        let _ = schema.validate(&once);
        let _ = schema.validate_update(&once, &document);
    }
}

#[test]
fn a_node_without_rules_stays_small() {
    // A server with 100 kinds has some 20,000 nodes, most of them without any rule.
    assert!(
        size_of::<super::super::node::Property>() <= 448,
        "{}",
        size_of::<super::super::node::Property>()
    );
}
