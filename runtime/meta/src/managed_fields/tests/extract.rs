//! Extracting what a manager owns, and telling items apart.

use super::*;

/// Extracts a set of fields, and checks that the part has exactly these fields.
fn check_exact(document: &Value, fields: Value, expected: &Value) {
    let fields = set(fields);
    let part = Ownership::of(&schema()).extract(document, &fields).unwrap();
    assert_eq!(part, *expected);
    assert_eq!(
        Ownership::of(&schema()).present_fields(&part),
        fields,
        "{part}"
    );
}

fn document() -> Value {
    json!({"apiVersion": "v1", "spec": {
        "size": 3,
        "on": true,
        "labels": {"a": "1", "b": "2"},
        "point": {"x": 1, "y": 2},
        "ports": [
            {"port": 80, "protocol": "TCP", "name": "web"},
            {"port": 80, "protocol": "UDP", "name": "quic"},
            {"port": 53, "protocol": "TCP"}
        ],
        "tags": ["x", "y", "z"],
        "args": ["-v", "-q"],
        "free": {"any": {"deep": 1, "other": [1]}}
    }})
}

#[test]
fn a_part_has_the_owned_fields_and_no_others() {
    check_exact(&document(), json!({}), &json!({}));
    check_exact(
        &document(),
        json!({"f:spec": {
            "f:size": {},
            "f:labels": {"f:b": {}},
            "f:point": {},
            "f:tags": {"v:\"z\"": {}, "v:\"x\"": {}},
            "f:args": {},
            "f:free": {"f:any": {".": {}, "f:deep": {}}}
        }}),
        &json!({"spec": {
            "size": 3, "labels": {"b": "2"}, "point": {"x": 1, "y": 2}, "tags": ["x", "z"], "args": ["-v", "-q"],
            "free": {"any": {"deep": 1}}
        }}),
    );
}

#[test]
fn items_have_their_keys_but_for_defaults() {
    check_exact(
        &document(),
        json!({"f:spec": {"f:ports": {
            // Applied without a protocol, and with one.
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}},
            "k:{\"port\":53,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:protocol": {}},
            "k:{\"port\":80,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}}
        }}}),
        &json!({"spec": {"ports": [
            {"port": 80, "name": "web"},
            {"port": 80, "protocol": "UDP"},
            {"port": 53, "protocol": "TCP"}
        ]}}),
    );
    // The key of an item belongs to another manager.
    let fields = set(json!({"f:spec": {"f:ports": {
        "k:{\"port\":80,\"protocol\":\"UDP\"}": {"f:name": {}}
    }}}));
    assert_eq!(
        Ownership::of(&schema())
            .extract(&document(), &fields)
            .unwrap(),
        json!({"spec": {"ports": [{"port": 80, "protocol": "UDP", "name": "quic"}]}})
    );
}

#[test]
fn containers_that_were_applied_empty_stay_empty() {
    check_exact(
        &document(),
        json!({"f:spec": {"f:labels": {}, "f:free": {"f:any": {}}}}),
        &json!({"spec": {"labels": {}, "free": {"any": {}}}}),
    );
    // Types leave out empty lists and maps.
    let fields = set(json!({"f:spec": {"f:labels": {}, "f:args": {}, "f:point": {}}}));
    assert_eq!(
        Ownership::of(&schema())
            .extract(&json!({"spec": {}}), &fields)
            .unwrap(),
        json!({"spec": {"labels": {}, "args": [], "point": {}}})
    );
}

#[test]
fn fields_that_the_object_lacks_are_an_error() {
    let fields = set(json!({"f:spec": {
        "f:size": {},
        "f:newer": {"f:x": {}},
        "f:tags": {"v:\"q\"": {}},
        "f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}}}
    }}));
    let error = Ownership::of(&schema())
        .extract(&document(), &fields)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the object does not have .spec.newer, .spec.ports[port=81,protocol=\"TCP\"], .spec.tags[=\"q\"]"
    );
}

#[test]
fn a_part_of_a_stored_list_with_equal_items_has_one_of_them() {
    let document = json!({"spec": {"tags": ["x", "x"]}});
    check_exact(
        &document,
        json!({"f:spec": {"f:tags": {"v:\"x\"": {}}}}),
        &json!({"spec": {"tags": ["x"]}}),
    );
}

#[test]
fn items_that_cannot_be_told_apart_are_problems() {
    let check = |document: Value, expected: &[&str]| {
        assert_eq!(Ownership::of(&schema()).item_problems(&document), expected);
    };
    check(document(), &[]);
    check(json!({"spec": {"unknown": [1, 1]}, "more": {}}), &[]);
    check(
        json!({"spec": {
            "args": ["a", "a"],
            "tags": ["a", "b", "a"],
            "ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}, 7]
        }}),
        &[
            "spec.ports: the items 0 and 1 are the same item: [port=1,protocol=\"TCP\"]",
            "spec.ports[3]: associative list with keys may not have non-map elements",
            "spec.tags: the items 0 and 2 are equal: [=\"a\"]",
        ],
    );
}
