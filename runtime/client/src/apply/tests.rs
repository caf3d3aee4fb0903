//! Builders: their requests, their refusals, and the fields that they extract.

use std::collections::BTreeMap;

use apiloom_kinds::core::v1 as core;
use apiloom_meta::OwnerReference;
use serde::Serialize;
use serde_json::{Value, json};

use self::declared::{ConfigMap, Key, Layer, Layout, Namespace, Source, Text};
use super::{Configuration, ExtractError, Part as _};

#[allow(unreachable_pub, dead_code, reason = "the macro is for public modules")]
mod declared {
    use std::collections::BTreeMap;

    use super::core;

    crate::configurations! {
        kind ConfigMap(namespaced) of core::ConfigMap:
            data "data": text_map,
            binary_data "binaryData": bytes(BTreeMap<String, Vec<u8>>),
            immutable "immutable": value(bool),
            note "note": nullable(String),
            layout "layout": nullable(Layout),
            layers "layers": parts(Layer, edit_layers),
            by_name "byName": part_map(Layer, edit_by_name),
            tree "tree": part(Layer, edit_tree),
            source "source": part(Source, edit_source),
            words "words": texts,
            sizes "sizes": list(u16),
            weights "weights": map(u16),
            keys "keys": map(Key),
            texts "texts": list(Text),
            weight "weight": value(f64),
            inlined "": flat(Layout);
        kind Namespace(cluster, status) of core::Namespace: ;
        part Layout:
            width "width": value(i32);
        part Key:
            width "width": value(i32);
        part Text:
            width "width": value(i32);
        part Layer:
            name "name": text,
            #[cfg(any())]
            absent "absent": value(Absent),
            r#type "type": text,
            child "child": part(Layer, edit_child),
            default "default": value(bool),
            share "share": value(f64);
        union Source:
            inline "inline": text,
            file "file": part(Layer, edit_file);
    }
}

fn check(configuration: &impl Serialize, expected: Value) {
    assert_eq!(serde_json::to_value(configuration).unwrap(), expected);
}

/// The fields besides those of a new configuration.
fn check_fields(configuration: &ConfigMap, expected: Value) {
    let mut json = serde_json::to_value(configuration).unwrap();
    for name in ["apiVersion", "kind", "metadata"] {
        json.as_object_mut().unwrap().remove(name).unwrap();
    }
    assert_eq!(json, expected);
}

fn config() -> ConfigMap {
    ConfigMap::new("default", "a")
}

#[test]
fn trap_46_an_untouched_builder_has_type_and_name_only() {
    check(
        &config(),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}),
    );
    check(
        &Namespace::new("a"),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
    );
    check(&Layer::new(), json!({}));
}

#[test]
fn builders_may_be_called_as_type_parameters_often_are() {
    check_fields(
        &config()
            .keys([("a", Key::new().width(1))])
            .texts([Text::new().width(2)]),
        json!({"keys": {"a": {"width": 1}}, "texts": [{"width": 2}]}),
    );
}

#[test]
fn metadata_is_set() {
    let owner = OwnerReference {
        name: "o".to_owned(),
        uid: "u".to_owned(),
        ..OwnerReference::default()
    };
    let namespace = Namespace::new("a")
        .labels([("app", "x")])
        .annotations([("b".to_owned(), "y".to_owned())])
        .finalizers(["example.com/f"])
        .owner_references([owner])
        .uid("id")
        .resource_version("7");
    check(
        &namespace,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": "a",
            "labels": {"app": "x"},
            "annotations": {"b": "y"},
            "finalizers": ["example.com/f"],
            "ownerReferences": [{"apiVersion": "", "kind": "", "name": "o", "uid": "u"}],
            "uid": "id",
            "resourceVersion": "7",
        }}),
    );
}

#[test]
fn each_form_has_its_json() {
    let layer = |name: &str| Layer::new().name(name);
    let configuration = config()
        .data([("a", "1")])
        .binary_data(BTreeMap::from([("b".to_owned(), vec![1, 2])]))
        .immutable(false)
        .note("n".to_owned())
        .layout(Layout::new())
        .layers([layer("x").r#type("t"), layer("y")])
        .by_name([("z", Layer::new())])
        .tree(Layer::new().child(layer("leaf")))
        .words(["w"])
        .sizes([1, 2])
        .weights([("w", 3)])
        .weight(0.5)
        .inlined(Layout::new().width(4));
    check_fields(
        &configuration,
        json!({
            "data": {"a": "1"}, "binaryData": {"b": "AQI="}, "immutable": false, "note": "n", "layout": {},
            "layers": [{"name": "x", "type": "t"}, {"name": "y"}], "byName": {"z": {}},
            "tree": {"child": {"name": "leaf"}}, "words": ["w"], "sizes": [1, 2], "weights": {"w": 3},
            "weight": 0.5, "width": 4,
        }),
    );
}

#[test]
fn empty_values_and_null_are_sent_when_they_are_set() {
    let configuration = config()
        .data([("", ""); 0])
        .layers([])
        .words([""; 0])
        .tree(Layer::new())
        .layout(None)
        .note(None);
    check_fields(
        &configuration,
        json!({"data": {}, "layers": [], "words": [], "tree": {}, "layout": null, "note": null}),
    );
    check_fields(
        &configuration
            .unset("tree")
            .unset("data")
            .unset("note")
            .unset("words"),
        json!({"layers": [], "layout": null}),
    );
}

#[test]
fn one_member_of_a_union_is_set() {
    check(
        &Source::new().file(Layer::new()).inline("x"),
        json!({"inline": "x"}),
    );
    let edited = Source::new().inline("x").edit_file(|file| file.name("f"));
    check(&edited, json!({"file": {"name": "f"}}));
    check(
        &edited.edit_file(|file| file.r#type("t")),
        json!({"file": {"name": "f", "type": "t"}}),
    );
}

#[test]
fn parts_are_changed_in_place() {
    let configuration = config()
        .edit_layers(|mut layers| {
            layers.push(Layer::new().name("a"));
            layers
        })
        .edit_layers(|layers| {
            let named = layers.into_iter().map(|layer| match layer.get("name") {
                Some(name) if name == "a" => layer.r#type("found"),
                _ => layer,
            });
            named.collect()
        })
        .edit_by_name(|mut layers| {
            layers.insert("b".to_owned(), Layer::new());
            layers
        })
        .edit_tree(|tree| tree.edit_child(|child| child.name("c")))
        .set("newer", &json!({"any": 1}));
    check_fields(
        &configuration,
        json!({
            "layers": [{"name": "a", "type": "found"}], "byName": {"b": {}}, "tree": {"child": {"name": "c"}},
            "newer": {"any": 1},
        }),
    );
}

fn check_refused(configuration: &ConfigMap, expected: &str) {
    let error = Configuration::<core::ConfigMap>::document(configuration).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the configuration of ConfigMap \"a\": {expected}")
    );
}

#[test]
fn values_without_json_are_refused_when_they_are_sent() {
    let text = "the field takes no null, and JSON has no infinite numbers";
    check_refused(&config().weight(f64::NAN), &format!("weight: {text}"));
    let tree = Layer::new().child(Layer::new().share(f64::INFINITY));
    check_refused(
        &config().tree(tree.clone()),
        &format!("tree: child: share: {text}"),
    );
    // An error stays where it began.
    check_refused(
        &config().edit_layers(|_| vec![tree]).words(["w"]),
        &format!("layers: child: share: {text}"),
    );
}

#[test]
fn items_that_are_not_unique_are_refused_when_they_are_sent() {
    check_refused(
        &config().finalizers(["f", "g", "f"]),
        "metadata.finalizers: the items 0 and 2 are equal: [=\"f\"]",
    );
    let owner = OwnerReference {
        uid: "u".to_owned(),
        ..OwnerReference::default()
    };
    check_refused(
        &config().owner_references([owner.clone(), owner]),
        "metadata.ownerReferences: the items 0 and 1 are the same item: [uid=\"u\"]",
    );
}

/// An object with entries of managers.
fn object(entries: Value) -> core::ConfigMap {
    let object = json!({
        "metadata": {
            "name": "a", "namespace": "default", "uid": "u", "resourceVersion": "3", "labels": {"mine": "1", "other": "2"},
            "finalizers": ["x", "y"], "managedFields": entries,
        },
        "data": {"mine": "1", "other": "2"},
    });
    serde_json::from_value(object).unwrap()
}

fn entry(manager: &str, subresource: &str, fields: Value) -> Value {
    json!({
        "manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields,
        "subresource": subresource,
    })
}

#[test]
fn a_managers_fields_are_extracted() {
    let update = json!({
        "manager": "me", "operation": "Update", "apiVersion": "v9", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:other": {}}},
    });
    let object = object(json!([
        update,
        entry("me", "status", json!({"f:data": {"f:other": {}}})),
        entry(
            "me",
            "",
            json!({
                "f:metadata": {"f:labels": {"f:mine": {}}, "f:finalizers": {"v:\"y\"": {}}},
                "f:data": {"f:mine": {}}, "f:binaryData": {},
            })
        ),
        entry("other", "", json!({"f:data": {"f:newer": {}}})),
    ]));
    check(
        &ConfigMap::extract(&object, "me").unwrap(),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "default", "labels": {"mine": "1"}, "finalizers": ["y"]},
            "data": {"mine": "1"}, "binaryData": {},
        }),
    );
    assert_eq!(ConfigMap::extract(&object, "none").unwrap(), config());
    let error = ConfigMap::extract(&object, "other").unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"other\" has fields of ConfigMap \"a\" that the type does not know: the object does not have .data.newer"
    );
}

#[test]
fn what_cannot_be_extracted_is_an_error() {
    let error = ConfigMap::extract(&object(json!([])), "me").unwrap_err();
    assert!(
        matches!(error, ExtractError::NoManagedFields { .. }),
        "{error}"
    );
    let mut other = entry("me", "", json!({"f:data": {}}));
    other["apiVersion"] = json!("v1beta1");
    let error = ConfigMap::extract(&object(json!([other])), "me").unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"me\" has applied ConfigMap \"a\" as v1beta1, not as v1: read it in that version"
    );
    let malformed = entry("me", "", json!({"data": {}}));
    let error = ConfigMap::extract(&object(json!([malformed])), "me").unwrap_err();
    assert!(matches!(error, ExtractError::Malformed { .. }), "{error}");
}

#[test]
fn the_status_is_extracted_by_its_own_entry() {
    let namespace = json!({
        "metadata": {"name": "a", "managedFields": [
            entry("me", "status", json!({"f:status": {"f:phase": {}}})),
            entry("me", "", json!({"f:metadata": {"f:labels": {}}})),
        ]},
        "spec": {}, "status": {"phase": "Active"},
    });
    let namespace: core::Namespace = serde_json::from_value(namespace).unwrap();
    let status = Namespace::extract_status(&namespace, "me").unwrap();
    assert_eq!(status.get("status"), Some(&json!({"phase": "Active"})));
    assert_eq!(
        Namespace::extract(&namespace, "me").unwrap().get("status"),
        None
    );
}

#[test]
fn debug_prints_no_values() {
    let configuration = config().data([("password", "hunter2")]);
    assert_eq!(
        format!("{configuration:?}"),
        r#"ConfigMap({"apiVersion", "data", "kind", "metadata"})"#
    );
}
