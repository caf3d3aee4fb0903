//! Sets of fields, entries of managedFields, and what apply does with documents.

use apiloom_schema::Hooks;
use serde_json::{Value, json};

use super::{
    FieldSet, MAX_UPDATE_ENTRIES, ManagedEntry, ManagedFields, Manager, Operation, Ownership,
    PathElement,
};
use crate::codec::Decoder;
use crate::codec::limits::MAX_DEPTH;
use crate::object::Object;
use crate::schema::Schema;

mod documents;
mod entry_text;
mod extract;
mod scan;

fn schema() -> Schema {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "on": {"type": "boolean"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "point": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "x": {"type": "integer"}, "y": {"type": "integer"}}},
            "ports": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "required": ["port", "protocol"], "properties": {
                    "port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"},
                    "name": {"type": "string"}}}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "args": {"type": "array", "items": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
        }}
    }});
    Schema::from_json(&schema, &Hooks::default()).unwrap()
}

fn set(value: Value) -> FieldSet {
    FieldSet::from_value(&value).unwrap()
}

/// The tree of a set.
fn value(set: &FieldSet) -> Value {
    serde_json::from_str(&set.to_json()).unwrap()
}

#[test]
fn fields_v1_is_read_and_written() {
    let fields = json!({"f:spec": {
        ".": {},
        "f:ports": {".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}},
        "f:tags": {"v:\"a\"": {}},
        "i:3": {}
    }});
    let read = set(fields.clone());
    assert_eq!(value(&read), fields);
    assert_eq!(
        read.paths(),
        [
            ".spec",
            ".spec.ports",
            ".spec[3]",
            ".spec.ports[port=80,protocol=\"TCP\"]",
            ".spec.ports[port=80,protocol=\"TCP\"].name",
            ".spec.tags[=\"a\"]",
        ]
    );
    assert_eq!(read.len(), 6);
    // Unknown types of elements are left out, as by Kubernetes.
    assert_eq!(set(json!({"f:a": {}, "x:b": {}})), set(json!({"f:a": {}})));
    assert!(set(json!({})).is_empty());
}

#[test]
fn malformed_keys_are_errors_that_name_them() {
    for (key, why) in [
        ("f", "it must begin with its type and a colon"),
        ("fa:", "it must begin with its type and a colon"),
        ("i:x", "the index must be an integer"),
        ("k:[]", "the keys must be a JSON object"),
        ("v:{", "EOF while parsing an object at line 1 column 1"),
    ] {
        let error = FieldSet::from_value(&json!({"f:a": {key: {}}})).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the key {key:?} of fieldsV1 is malformed: {why}")
        );
    }
}

#[test]
fn elements_are_ordered_by_type_and_content() {
    let element = |key: &str| PathElement::parse(key).unwrap().unwrap();
    let ordered = [
        "f:a",
        "f:b",
        "k:{\"a\":1}",
        "k:{\"a\":2}",
        "k:{\"a\":2,\"b\":1}",
        "k:{\"b\":1}",
        "v:1",
        "v:1.5",
        "v:2",
        "v:\"a\"",
        "v:false",
        "v:true",
        "i:-1",
        "i:0",
    ];
    for pair in ordered.windows(2) {
        assert!(element(pair[0]) < element(pair[1]), "{pair:?}");
    }
    assert_eq!(element("v:1"), element("v:1.0"));
    assert_eq!(
        element("k:{\"b\":1,\"a\":2}"),
        element("k:{\"a\":2,\"b\":1}")
    );
}

#[test]
fn a_field_and_what_is_below_it_are_members_independently() {
    let whole = set(json!({"f:a": {".": {}, "f:b": {}}}));
    let below = set(json!({"f:a": {"f:b": {}}}));
    let own = set(json!({"f:a": {}}));
    assert_eq!(whole.difference(&below), own);
    assert_eq!(whole.difference(&own), below);
    assert_eq!(own.union(&below), whole);
    assert_eq!(whole.intersection(&own), own);
    assert!(below.intersection(&own).is_empty());
}

#[test]
fn fields_of_a_document_follow_its_schema() {
    let document = json!({"spec": {
        "size": 1, "labels": {"a": "b"}, "point": {"x": 1},
        "ports": [{"port": 80, "name": "web"}, {"port": 80, "protocol": "UDP"}],
        "tags": ["a", "b", "b"], "args": ["x"], "free": {"deep": {"list": [1]}, "none": {}}
    }});
    assert_eq!(
        value(&Ownership::of(&schema()).present_fields(&document)),
        json!({"f:spec": {
            "f:size": {}, "f:labels": {"f:a": {}}, "f:point": {}, "f:args": {},
            "f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}},
                "k:{\"port\":80,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}}
            },
            "f:tags": {"v:\"a\"": {}, "v:\"b\"": {}},
            "f:free": {"f:deep": {".": {}, "f:list": {}}, "f:none": {}}
        }})
    );
}

#[track_caller]
fn check_changes(before: Value, after: Value, [removed, modified, added]: [Value; 3]) {
    let changes =
        Ownership::of(&schema()).changed_fields(&json!({"spec": before}), &json!({"spec": after}));
    let of = |set: &FieldSet| value(set).get("f:spec").cloned().unwrap_or(json!({}));
    assert_eq!(of(&changes.removed), removed, "removed");
    assert_eq!(of(&changes.modified), modified, "modified");
    assert_eq!(of(&changes.added), added, "added");
}

#[test]
fn changes_are_told_by_field_and_by_item() {
    let none = || json!({});
    check_changes(
        json!({"size": 1}),
        json!({"size": 1}),
        [none(), none(), none()],
    );
    check_changes(
        json!({"size": 1, "on": true}),
        json!({"size": 2, "args": ["a"]}),
        [
            json!({"f:on": {}}),
            json!({"f:size": {}}),
            json!({"f:args": {}}),
        ],
    );
    check_changes(
        json!({"labels": {"a": "1", "b": "1"}}),
        json!({"labels": {"a": "2", "c": "1"}}),
        [
            json!({"f:labels": {"f:b": {}}}),
            json!({"f:labels": {"f:a": {}}}),
            json!({"f:labels": {"f:c": {}}}),
        ],
    );
    // A new container is added with its content, and one without content is one value.
    check_changes(
        json!({"tags": ["a"]}),
        json!({"labels": {"a": "1"}, "free": {}}),
        [
            json!({"f:tags": {".": {}, "v:\"a\"": {}}}),
            none(),
            json!({"f:free": {}, "f:labels": {".": {}, "f:a": {}}}),
        ],
    );
    check_changes(
        json!({"point": {"x": 1, "y": 1}, "args": ["a"]}),
        json!({"point": {"x": 1}, "args": ["a", "b"]}),
        [none(), json!({"f:args": {}, "f:point": {}}), none()],
    );
    check_changes(
        json!({"ports": [{"port": 1, "name": "a"}, {"port": 2}]}),
        json!({"ports": [{"port": 2, "protocol": "TCP"}, {"port": 1, "name": "b"}, {"port": 3}]}),
        [
            none(),
            json!({"f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {"f:name": {}}}}),
            json!({"f:ports": {
                "k:{\"port\":2,\"protocol\":\"TCP\"}": {"f:protocol": {}},
                "k:{\"port\":3,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}),
        ],
    );
    check_changes(
        json!({"tags": ["a", "a", "b"]}),
        json!({"tags": ["a", "b", "b"]}),
        [
            json!({"f:tags": {"v:\"a\"": {}, "v:\"b\"": {}}}),
            none(),
            json!({"f:tags": {"v:\"a\"": {}, "v:\"b\"": {}}}),
        ],
    );
    check_changes(
        json!({"free": {"a": 1}}),
        json!({"free": {"a": {"b": 1}}}),
        [
            none(),
            json!({"f:free": {"f:a": {}}}),
            json!({"f:free": {"f:a": {"f:b": {}}}}),
        ],
    );
}

/// Both documents merged; checks that a change is reported if there is one.
fn merge_applied(present: &Value, applied: &Value) -> Value {
    let mut merged = present.as_object().unwrap().clone();
    let is_changed =
        Ownership::of(&schema()).merge_applied(&mut merged, applied.as_object().unwrap());
    let merged = Value::Object(merged);
    assert_eq!(is_changed, merged != *present, "{present} and {applied}");
    merged
}

#[test]
fn applied_values_win_and_others_stay() {
    let merge = |present: Value, applied: Value| {
        let merged = merge_applied(&json!({"spec": present}), &json!({"spec": applied}));
        merged["spec"].clone()
    };
    assert_eq!(
        merge(
            json!({"size": 1, "labels": {"a": "1"}, "args": ["a", "b"], "point": {"x": 1, "y": 1}}),
            json!({"size": 2, "labels": {"b": "1"}, "args": ["c"], "point": {"x": 2}}),
        ),
        json!({"size": 2, "labels": {"a": "1", "b": "1"}, "args": ["c"], "point": {"x": 2}})
    );
    assert_eq!(
        merge(
            json!({"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]}),
            json!({"ports": [{"port": 2, "protocol": "TCP", "name": "c"}]}),
        ),
        json!({"ports": [{"port": 1, "name": "a"}, {"port": 2, "protocol": "TCP", "name": "c"}]})
    );
    assert_eq!(
        merge(json!({}), json!({"labels": {}})),
        json!({"labels": {}})
    );
    assert_eq!(
        merge(json!({"size": 1}), json!({"size": null})),
        json!({"size": null})
    );
}

#[cfg(feature = "schema")]
#[test]
fn an_atomic_document_is_replaced() {
    let schema = json!({"type": "object", "x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": true});
    let schema = Schema::of_custom_resource(&schema).unwrap();
    let (mut merged, applied) = (json!({"a": 1, "b": 1}), json!({"b": 2}));
    let (present, applied) = (
        merged.as_object_mut().unwrap(),
        applied.as_object().unwrap(),
    );
    assert!(Ownership::of(&schema).merge_applied(present, applied));
    assert_eq!(present, applied);
    assert!(!Ownership::of(&schema).merge_applied(present, applied));
}

#[test]
fn merged_items_are_in_the_applied_order_and_others_keep_their_place() {
    for (present, applied, merged) in [
        ("abc", "", "abc"),
        ("", "abc", "abc"),
        ("abc", "c", "abc"),
        ("abc", "xc", "abxc"),
        ("abc", "ca", "bca"),
        ("abcd", "dxa", "bcdxa"),
        ("abc", "bd", "abcd"),
        ("aab", "a", "ab"),
        ("aab", "c", "aabc"),
    ] {
        let list = |text: &str| {
            let items: Vec<String> = text.chars().map(String::from).collect();
            json!({"spec": {"tags": items}})
        };
        let result = merge_applied(&list(present), &list(applied));
        let result: String = result["spec"]["tags"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(result, merged, "{present} and {applied}");
    }
}

#[test]
fn removed_fields_leave_their_parents_as_null() {
    let document = json!({"spec": {
        "size": 1, "labels": {"a": "1", "b": "1"}, "tags": ["a"],
        "ports": [{"port": 1, "name": "a"}, {"port": 2}]
    }});
    let removed = set(json!({"f:spec": {
        "f:size": {}, "f:labels": {"f:a": {}}, "f:tags": {"v:\"a\"": {}},
        "f:ports": {
            "k:{\"port\":1,\"protocol\":\"TCP\"}": {"f:name": {}},
            "k:{\"port\":2,\"protocol\":\"TCP\"}": {}}
    }}));
    assert_eq!(
        Ownership::of(&schema()).without_fields(&document, &removed),
        json!({"spec": {"labels": {"b": "1"}, "tags": null, "ports": [{"port": 1}]}})
    );
}

#[test]
fn structs_on_the_way_are_named_but_maps_and_items_are_not() {
    let below = json!({"f:spec": {
        "f:labels": {"f:a": {}},
        "f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {"f:name": {}}},
        "f:free": {"f:deep": {"f:x": {}}}
    }});
    assert_eq!(
        value(&Ownership::of(&schema()).with_named_fields(&set(below))),
        json!({"f:spec": {
            ".": {},
            "f:labels": {".": {}, "f:a": {}},
            "f:ports": {".": {}, "k:{\"port\":1,\"protocol\":\"TCP\"}": {"f:name": {}}},
            "f:free": {".": {}, "f:deep": {"f:x": {}}}
        }})
    );
}

/// The fields below `spec` after a change of the schema.
#[track_caller]
fn check_reconciled(owned: Value, reconciled: Option<Value>) {
    let set = set(json!({ "f:spec": owned }));
    let result = Ownership::of(&schema()).reconciled_fields(&set);
    let below = result.map(|set| value(&set)["f:spec"].clone());
    assert_eq!(below, reconciled);
}

#[test]
fn who_owned_parts_of_what_is_atomic_now_owns_it() {
    let owner = || Some(json!({"f:size": {}, "f:point": {}}));
    check_reconciled(
        json!({"f:size": {}, "f:point": {"f:x": {}, "f:y": {}}}),
        owner(),
    );
    check_reconciled(
        json!({"f:size": {}, "f:point": {".": {}, "f:x": {"f:deep": {}}}}),
        owner(),
    );
    let items = json!({"f:args": {".": {}, "v:\"a\"": {}, "v:\"b\"": {}}});
    check_reconciled(items, Some(json!({"f:args": {}})));
    // What is no longer atomic is owned without its fields, as it was; and all else stays.
    for same in [
        json!({"f:point": {}, "f:args": {}}),
        json!({"f:labels": {}, "f:ports": {}}),
        json!({"f:labels": {"f:a": {}}, "f:tags": {"v:\"a\"": {}}}),
        json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}}),
        json!({"f:free": {"f:a": {"v:1": {}}}, "f:unknown": {"f:a": {}}}),
        json!({}),
    ] {
        check_reconciled(same, None);
    }
}

#[test]
fn documents_that_cannot_be_applied_are_told_with_their_paths() {
    let check = |spec: Value| Ownership::of(&schema()).check_applied(&json!({"spec": spec}));
    assert_eq!(
        check(json!({"size": 1, "free": {"any": [{}]}, "labels": {"a": "b"}, "on": null})),
        Ok(())
    );
    for (spec, why) in [
        (
            json!({"bogus": 1}),
            ".spec.bogus: field not declared in schema",
        ),
        (json!([]), ".spec: expected map, got &{[]}"),
        (
            json!({"tags": {"a": 1}}),
            ".spec.tags: expected list, got &{map[a:1]}",
        ),
        (
            json!({"size": "x"}),
            ".spec.size: expected numeric (int or float), got string",
        ),
        (json!({"on": 1}), ".spec.on: expected boolean, got &{1}"),
        (
            json!({"labels": {"a": 1}}),
            ".spec.labels.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}),
            ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
        ),
        (
            json!({"ports": [null]}),
            ".spec.ports: element 0: associative list with keys may not have a null element",
        ),
        (
            json!({"a": 1, "b": 2}),
            "errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema",
        ),
    ] {
        assert_eq!(check(spec), Err(why.to_owned()));
    }
}

/// What a schema without a type, of texts with a format, and below a node that keeps unknown fields takes.
#[test]
fn custom_documents_that_cannot_be_applied_are_told_as_by_kubernetes() {
    let schema = Schema::of_custom_resource(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "either": {"x-kubernetes-int-or-string": true},
            "day": {"type": "string", "format": "date"},
            "bytes": {"type": "string", "format": "byte"},
            "odd": {"type": "string", "format": "unheard-of"},
            "unnamed": {"type": "string", "format": ""},
            "any": {
                "type": "object",
                "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
            },
            "bare": {"type": "object"},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "inner": {"type": "object", "properties": {"a": {"type": "string"}}},
            }},
            "list": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        },
    }}}))
    .unwrap();
    let check = |spec: Value| Ownership::of(&schema).check_applied(&json!({"spec": spec}));
    for taken in [
        json!({"either": {"a": 1}}),
        json!({"either": []}),
        json!({"day": true}),
        json!({"odd": 1}),
        json!({"any": {"metadata": {"labels": {"a": "b"}}, "x": {"metadata": {"y": 1}}}}),
        json!({"bare": {"a": [1]}}),
        json!({"open": {"x": 1, "inner": {"y": {"z": 1}}}}),
    ] {
        assert_eq!(check(taken.clone()), Ok(()), "{taken}");
    }
    for (spec, why) in [
        (
            json!({"day": {"a": 1}}),
            ".spec.day: expected any scalar, got &{map[a:1]}",
        ),
        (
            json!({"odd": []}),
            ".spec.odd: expected any scalar, got &{[]}",
        ),
        (
            json!({"unnamed": 1}),
            ".spec.unnamed: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({"any": {"metadata": {"y": 1}}}),
            ".spec.any.metadata.y: field not declared in schema",
        ),
        (
            json!({"bytes": 1}),
            ".spec.bytes: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({"open": {"inner": {"a": 1, "y": 1}}}),
            ".spec.open.inner.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({"list": [null, null, 1]}),
            ".spec.list: element 0: associative list without keys has an element that's an explicit null",
        ),
    ] {
        assert_eq!(check(spec), Err(why.to_owned()));
    }
}

fn entry(manager: &str, operation: &str, time: &str, field: &str) -> Value {
    json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
        "fieldsType": "FieldsV1", "fieldsV1": {field: {}}})
}

fn object(entries: Vec<Value>) -> Object {
    Object::from_value(json!({"metadata": {"name": "a", "managedFields": entries}})).unwrap()
}

#[test]
fn entries_are_written_in_order_and_without_empty_ones() {
    let mut empty = entry("z", "Update", "2026-01-01T00:00:00Z", "f:a");
    empty["fieldsV1"] = json!({});
    let entries = vec![
        entry("b", "Update", "2026-01-02T00:00:00Z", "f:b"),
        entry("a", "Update", "2026-01-02T00:00:00Z", "f:a"),
        empty,
        entry("c", "Update", "2026-01-01T00:00:00Z", "f:c"),
        entry("d", "Apply", "2026-01-09T00:00:00Z", "f:d"),
    ];
    let mut object = object(entries);
    let managed = ManagedFields::read(&object).unwrap();
    managed.write(&mut object);
    let tree = object.into_tree();
    let entries = tree["metadata"]["managedFields"].as_array().unwrap();
    let names: Vec<&str> = entries
        .iter()
        .filter_map(|e| e["manager"].as_str())
        .collect();
    assert_eq!(names, ["d", "c", "a", "b"]);
}

#[test]
fn entries_that_are_not_valid_are_errors() {
    for (field, value, why) in [
        (
            "operation",
            json!("Patch"),
            "operation must be `Apply` or `Update`",
        ),
        ("apiVersion", json!(""), "apiVersion must not be empty"),
        (
            "fieldsType",
            json!("FieldsV2"),
            "fieldsType must be `FieldsV1`",
        ),
        (
            "fieldsV1",
            json!({"bad": {}}),
            "the key \"bad\" of fieldsV1 is malformed: it must begin with its type and a colon",
        ),
    ] {
        let mut bad = entry("a", "Update", "", "f:a");
        bad[field] = value;
        let error =
            ManagedFields::read(&object(vec![entry("b", "Apply", "", "f:b"), bad])).unwrap_err();
        assert_eq!(error, format!("metadata.managedFields[1]: {why}"));
    }
    assert!(ManagedFields::are_cleared(&object(vec![json!({})])));
    assert!(ManagedFields::are_cleared(&object(vec![])));
    let null = json!({"metadata": {"managedFields": null}});
    assert!(!ManagedFields::are_cleared(
        &Object::from_value(null).unwrap()
    ));
    assert!(!ManagedFields::are_cleared(&object(vec![
        json!({}),
        json!({})
    ])));
}

#[test]
fn the_last_of_several_entries_of_a_manager_counts() {
    let first = entry("a", "Update", "2026-01-01T00:00:00Z", "f:a");
    let last = entry("a", "Update", "2026-01-02T00:00:00Z", "f:b");
    let other = entry("a", "Apply", "2026-01-02T00:00:00Z", "f:c");
    let read = ManagedFields::read(&object(vec![first, other, last])).unwrap();
    let fields: Vec<Value> = read
        .entries()
        .iter()
        .map(|e| value(e.fields().unwrap()))
        .collect();
    assert_eq!(fields, [json!({"f:c": {}}), json!({"f:b": {}})]);
}

#[test]
fn the_oldest_updates_are_merged_when_there_are_too_many() {
    let count = MAX_UPDATE_ENTRIES + 2;
    let mut entries: Vec<Value> = (0..count)
        .map(|i| {
            let time = format!("2026-01-{:02}T00:00:00Z", i + 1);
            entry(&format!("m{i}"), "Update", &time, &format!("f:{i}"))
        })
        .collect();
    entries.push(entry("x", "Apply", "2025-01-01T00:00:00Z", "f:x"));
    let mut managed = ManagedFields::read(&object(entries)).unwrap();
    managed.merge_oldest().unwrap();
    let updates = |managed: &ManagedFields| {
        let updates = managed.entries().iter();
        updates
            .filter(|e| e.manager.operation == Operation::Update)
            .count()
    };
    assert_eq!(updates(&managed), MAX_UPDATE_ENTRIES);
    let named = |managed: &ManagedFields, name: &str| {
        let mut entries = managed.entries().iter();
        entries
            .find(|e| e.manager.name == name)
            .map(|e| (value(e.fields().unwrap()), e.time.clone()))
    };
    let merged = json!({"f:0": {}, "f:1": {}, "f:2": {}});
    let time = Some("2026-01-03T00:00:00Z".to_owned());
    assert_eq!(named(&managed, "ancient-changes"), Some((merged, time)));
    assert!(named(&managed, "x").is_some() && named(&managed, "m3").is_some());
    // The entry of earlier merges takes part again.
    let mut more = managed.entries()[0].clone();
    more.manager.name = "late".to_owned();
    more.manager.operation = Operation::Update;
    more.time = Some("2026-02-01T00:00:00Z".to_owned());
    managed.entries_mut().push(more);
    managed.merge_oldest().unwrap();
    assert_eq!(updates(&managed), MAX_UPDATE_ENTRIES);
    let (merged, _) = named(&managed, "ancient-changes").unwrap();
    assert_eq!(merged, json!({"f:0": {}, "f:1": {}, "f:2": {}, "f:3": {}}));
}

#[test]
fn managed_fields_are_no_deeper_than_documents_may_be() {
    for depth in 1..MAX_DEPTH {
        let fields = format!("{}{{}}{}", "{\"f:a\":".repeat(depth), "}".repeat(depth));
        let manager = Manager {
            name: "m".to_owned(),
            operation: Operation::Update,
            api_version: "v1".to_owned(),
            subresource: String::new(),
        };
        let fields = FieldSet::from_json(&fields).unwrap();
        let mut managed = ManagedFields::default();
        let entries = managed.entries_mut();
        entries.push(ManagedEntry::new(manager, None, fields));
        let object = json!({"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}});
        let mut object = Object::from_value(object).unwrap();
        managed.write(&mut object);
        let stored = object.into_tree().to_string();
        let read = Decoder::stored()
            .value(stored.as_bytes())
            .unwrap_or_else(|error| panic!("{depth}: {error}"));
        let has_entries = read["metadata"]["managedFields"].is_array();
        assert_eq!(has_entries, depth < MAX_DEPTH - 5, "{depth}");
    }
}

#[test]
fn texts_that_no_encoder_wrote_are_refused() {
    let read = |text: &str| {
        let object = json!({"kind": "A", "metadata": {"name": "a", "managedFields": text}});
        ManagedFields::read(&Object::from_value(object).unwrap()).map(|read| read.entries().len())
    };
    let entry = r#"{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}"#;
    assert_eq!(read(&format!("[{entry}]")), Ok(1));
    let other = entry.replace("\"m\"", "\"n\"");
    assert_eq!(read(&format!("[{entry},{other}]")), Ok(2));
    // An entry without members is read, and is no valid one.
    let empty = "metadata.managedFields[0]: operation must be `Apply` or `Update`";
    assert_eq!(read("[{}]"), Err(empty.to_owned()));
    let cut = &entry[..entry.len() - 1];
    for text in [
        "",
        "[",
        "[{",
        "{}",
        "[]]",
        "[{},]",
        r#"[{"manager":"m",}]"#,
        &format!("[{cut}]"),
        &format!("[{cut},}}]"),
        &format!("[{entry}{entry}]"),
        &format!("[{entry}"),
    ] {
        let malformed = "metadata.managedFields: malformed text";
        assert_eq!(read(text), Err(malformed.to_owned()), "{text}");
    }
}
