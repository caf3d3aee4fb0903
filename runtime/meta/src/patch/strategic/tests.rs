//! Strategic merge patches against a schema with every kind of list.

mod upstream;

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::super::Patch;
use super::*;
use crate::schema::Schema;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text = || json!({"type": "string"});
    let keyed = |key: &str, mut properties: Value| {
        properties[key] = json!({"type": "string"});
        json!({"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": key,
            "items": {"type": "object", "properties": properties}})
    };
    let tags = || json!({"type": "array", "items": text(), "x-kubernetes-patch-strategy": "merge"});
    let ports = keyed("port", json!({"protocol": text()}));
    let schema = json!({"type": "object", "properties": {
        "text": text(),
        "map": {"type": "object", "additionalProperties": text()},
        "inner": {"type": "object", "properties": {"a": text(), "b": text(), "tags": tags()}},
        "whole": {"type": "object", "x-kubernetes-patch-strategy": "replace", "properties": {"a": text(), "b": text()}},
        "retained": {"type": "object", "x-kubernetes-patch-strategy": "retainKeys", "properties": {"a": text(), "b": text()}},
        "atomic": {"type": "array", "items": text()},
        "tags": tags(),
        "pods": keyed("name", json!({"image": text(), "tags": tags(), "ports": ports})),
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "lists": {"type": "array", "x-kubernetes-patch-strategy": "merge",
            "items": {"type": "array", "items": text()}},
        "keyless": {"type": "array", "x-kubernetes-patch-strategy": "merge",
            "items": {"type": "object", "properties": {"name": text()}}},
    }});
    let schema = Schema::of_resource(&schema);
    schema.expect("structural")
});

fn apply(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let mut target = document.clone();
    let patch = Patch::parse_strategic(patch.to_string().as_bytes())?;
    match patch.apply(&SCHEMA, &mut target) {
        Ok(()) => Ok(target),
        Err(error) => {
            assert_eq!(
                target, *document,
                "a patch that fails changes nothing: {patch:?}"
            );
            Err(error)
        }
    }
}

#[track_caller]
fn check(document: Value, patch: Value, expected: Value) {
    assert_eq!(apply(&document, &patch).unwrap(), expected, "{patch}");
}

#[track_caller]
fn check_refused(document: Value, patch: Value, expected: PatchError) {
    assert_eq!(apply(&document, &patch).unwrap_err(), expected, "{patch}");
}

fn bad_format(why: &str) -> PatchError {
    PatchError::BadFormat(why.to_owned())
}

fn unmergeable(why: &str) -> PatchError {
    PatchError::Unmergeable(why.to_owned())
}

#[test]
fn directives_in_an_item_that_is_added_have_no_effect() {
    check(
        json!({"pods": [{"name": "a"}]}),
        json!({"pods": [{"name": "b", "image": null, "ports": [{"port": "1", "$patch": "delete"}, {"port": "2"}]}]}),
        json!({"pods": [{"name": "b", "ports": [{"port": "1"}, {"port": "2"}]}, {"name": "a"}]}),
    );
}

#[test]
fn objects_are_merged_and_null_deletes() {
    check(json!({"text": "x"}), json!({}), json!({"text": "x"}));
    check(
        json!({"inner": {"a": "1", "b": "2"}}),
        json!({"inner": {"a": "3"}, "text": "y"}),
        json!({"inner": {"a": "3", "b": "2"}, "text": "y"}),
    );
    check(
        json!({"inner": {"a": "1", "b": "2"}, "text": "x"}),
        json!({"inner": {"a": null}, "text": null, "map": null}),
        json!({"inner": {"b": "2"}}),
    );
    check(
        json!({"map": {"k": "1", "l": "2"}}),
        json!({"map": {"k": "3", "m": "4", "l": null}}),
        json!({"map": {"k": "3", "m": "4"}}),
    );
    check(
        json!({"free": {"l": [1, 2], "o": {"x": 1}}}),
        json!({"free": {"l": [3], "o": {"y": 2}}}),
        json!({"free": {"l": [3], "o": {"x": 1, "y": 2}}}),
    );
}

#[test]
fn an_absent_field_takes_the_value_of_the_patch_without_nulls_and_directives() {
    check(
        json!({}),
        json!({"inner": {"a": null, "b": "2", "$retainKeys": ["b"], "$setElementOrder/tags": ["x"], "tags": ["x"]}}),
        json!({"inner": {"b": "2", "tags": ["x"]}}),
    );
    check(
        json!({}),
        json!({"pods": [{"name": "a", "image": null}, {"name": "b", "$patch": "delete"}]}),
        json!({"pods": [{"name": "a"}]}),
    );
    // As in kube-apiserver, an object with a directive adds nothing.
    check(
        json!({}),
        json!({"inner": {"$patch": "replace", "a": "1"}, "$deleteFromPrimitiveList/tags": ["x"]}),
        json!({}),
    );
}

#[test]
fn a_value_of_another_type_is_replaced() {
    check(
        json!({"free": {"x": [1]}}),
        json!({"free": {"x": {"a": null, "b": 1}}}),
        json!({"free": {"x": {"b": 1}}}),
    );
    check(
        json!({"text": "x"}),
        json!({"text": {"$patch": "delete"}}),
        json!({}),
    );
}

#[test]
fn directives_replace_and_delete_objects() {
    check(
        json!({"inner": {"a": "1", "b": "2"}}),
        json!({"inner": {"$patch": "replace", "b": "3"}}),
        json!({"inner": {"b": "3"}}),
    );
    check(
        json!({"inner": {"a": "1", "b": "2"}, "text": "x"}),
        json!({"inner": {"$patch": "delete", "b": "3"}}),
        json!({"inner": {}, "text": "x"}),
    );
    check(
        json!({"text": "x", "map": {"k": "1"}}),
        json!({"$patch": "replace", "text": "y"}),
        json!({"text": "y"}),
    );
    check(
        json!({"whole": {"a": "1", "b": "2"}}),
        json!({"whole": {"b": "3"}}),
        json!({"whole": {"b": "3"}}),
    );
    for directive in [json!("bogus"), json!("merge"), json!(1)] {
        let shown = directive
            .as_str()
            .map_or(directive.to_string(), str::to_owned);
        check_refused(
            json!({"inner": {"a": "1"}}),
            json!({"inner": {"$patch": directive, "b": [1, {"c": null}]}}),
            PatchError::UnknownDirective(format!(
                "unknown patch type: {shown} in map: map[$patch:{shown} b:[1 map[c:<nil>]]]"
            )),
        );
    }
}

#[test]
fn retain_keys_removes_the_other_fields() {
    let retain = |keys: Value| json!({"retained": {"$retainKeys": keys, "a": "3"}});
    let document = json!({"retained": {"a": "1", "b": "2"}});
    check(
        document.clone(),
        retain(json!(["a"])),
        json!({"retained": {"a": "3"}}),
    );
    check(
        document.clone(),
        retain(json!(["a", "b", 5, {}])),
        json!({"retained": {"a": "3", "b": "2"}}),
    );
    check(
        document.clone(),
        json!({"retained": {"$retainKeys": ["b"], "a": null}}),
        json!({"retained": {"b": "2"}}),
    );
    for keys in [json!(["b"]), json!([]), json!("a"), json!(null)] {
        check_refused(
            document.clone(),
            retain(keys),
            bad_format("invalid patch format of retainKeys"),
        );
    }
}

#[test]
fn lists_without_strategy_are_replaced() {
    check(
        json!({"atomic": ["a", "b"]}),
        json!({"atomic": ["c"]}),
        json!({"atomic": ["c"]}),
    );
    check(
        json!({"atomic": ["a"]}),
        json!({"atomic": []}),
        json!({"atomic": []}),
    );
}

#[test]
fn lists_of_scalars_are_merged_as_sets() {
    let document = json!({"tags": ["a", "b", "c"]});
    check(
        document.clone(),
        json!({"tags": []}),
        json!({"tags": ["a", "b", "c"]}),
    );
    check(
        document.clone(),
        json!({"tags": ["b", "d"]}),
        json!({"tags": ["a", "b", "d", "c"]}),
    );
    check(
        document.clone(),
        json!({"tags": ["d", "d"]}),
        json!({"tags": ["d", "a", "b", "c"]}),
    );
    check(
        document.clone(),
        json!({"tags": ["d"], "$deleteFromPrimitiveList/tags": ["a", "x"]}),
        json!({"tags": ["d", "b", "c"]}),
    );
    check(
        document.clone(),
        json!({"tags": ["d"], "$deleteFromPrimitiveList/tags": ["b"], "$setElementOrder/tags": ["c", "d", "a"]}),
        json!({"tags": ["c", "d", "a"]}),
    );
    check(
        document.clone(),
        json!({"$deleteFromPrimitiveList/tags": null}),
        json!({}),
    );
    // Any list of scalars can be shortened.
    check(
        json!({"atomic": ["a", "b", "a"]}),
        json!({"$deleteFromPrimitiveList/atomic": ["a"]}),
        json!({"atomic": ["b"]}),
    );
    for patch in [
        json!({"$deleteFromPrimitiveList": ["a"]}),
        json!({"$deleteFromPrimitiveListX/tags": ["a"]}),
        json!({"$deleteFromPrimitiveList/tags": "a"}),
    ] {
        let why = "invalid patch format of primitive list";
        check_refused(document.clone(), patch, bad_format(why));
    }
    check_refused(
        document,
        json!({"tags": [1]}),
        bad_format("list element types are not identical: [[a b c] [1]]"),
    );
}

#[test]
fn lists_of_objects_are_merged_by_their_key() {
    let document = json!({"pods": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]});
    check(
        document.clone(),
        json!({"pods": [{"name": "b", "image": "3"}]}),
        json!({"pods": [{"name": "a", "image": "1"}, {"name": "b", "image": "3"}]}),
    );
    check(
        document.clone(),
        json!({"pods": [{"name": "c", "image": "3"}]}),
        json!({"pods": [{"name": "c", "image": "3"}, {"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}),
    );
    check(
        document.clone(),
        json!({"pods": [{"name": "a", "image": null}, {"name": "c"}, {"name": "c", "image": "3"}]}),
        json!({"pods": [{"name": "a"}, {"name": "c", "image": "3"}, {"name": "b", "image": "2"}]}),
    );
    check(
        document.clone(),
        json!({"pods": [{"name": "a", "$patch": "delete"}, {"name": "x", "$patch": "delete"}]}),
        json!({"pods": [{"name": "b", "image": "2"}]}),
    );
    check(
        document.clone(),
        json!({"pods": [{"$patch": "replace"}, {"name": "c"}]}),
        json!({"pods": [{"name": "c"}]}),
    );
    check(
        document,
        json!({"pods": [{"name": "b", "$retainKeys": ["name"]}]}),
        json!({"pods": [{"name": "a", "image": "1"}, {"name": "b"}]}),
    );
    // Twins: the first one is merged, all of them are deleted.
    let twins = json!({"pods": [{"name": "a"}, {"name": "b"}, {"name": "a", "image": "2"}]});
    check(
        twins.clone(),
        json!({"pods": [{"name": "a", "image": "3"}]}),
        json!({"pods": [{"name": "a", "image": "3"}, {"name": "a", "image": "2"}, {"name": "b"}]}),
    );
    check(
        twins,
        json!({"pods": [{"name": "a", "$patch": "delete"}]}),
        json!({"pods": [{"name": "b"}]}),
    );
}

#[test]
fn lists_inside_of_items_are_merged_too() {
    let document =
        json!({"pods": [{"name": "a", "tags": ["x"], "ports": [{"port": "1"}, {"port": "2"}]}]});
    check(
        document,
        json!({"pods": [{"name": "a", "tags": ["y"], "$setElementOrder/tags": ["x", "y"],
            "ports": [{"port": "2", "protocol": "udp"}, {"port": "1", "$patch": "delete"}]}]}),
        json!({"pods": [{"name": "a", "tags": ["x", "y"], "ports": [{"port": "2", "protocol": "udp"}]}]}),
    );
}

#[test]
fn an_order_moves_items_and_leaves_the_others_where_they_were() {
    let pods =
        |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    let document = json!({"pods": pods(&["a", "b", "c", "d"])});
    check(
        document.clone(),
        json!({"$setElementOrder/pods": pods(&["d", "a"])}),
        json!({"pods": pods(&["b", "c", "d", "a"])}),
    );
    check(
        document.clone(),
        json!({"$setElementOrder/pods": pods(&["x", "c", "a"]), "pods": [{"name": "x"}, {"name": "b", "$patch": "delete"}]}),
        json!({"pods": pods(&["x", "c", "a", "d"])}),
    );
    check(
        document.clone(),
        json!({"$setElementOrder/pods": [], "pods": []}),
        document.clone(),
    );
    check(
        json!({}),
        json!({"$setElementOrder/pods": pods(&["a", "b"]), "pods": pods(&["b"])}),
        json!({"pods": pods(&["b"])}),
    );
    check(
        json!({}),
        json!({"$setElementOrder/tags": ["a"]}),
        json!({}),
    );
    check(
        json!({"atomic": ["a", "b"]}),
        json!({"$setElementOrder/atomic": ["c", "b"], "atomic": ["c", "b"]}),
        json!({"atomic": ["c", "b"]}),
    );
    check_refused(
        document.clone(),
        json!({"$setElementOrder/pods": pods(&["a", "b"]), "pods": pods(&["b", "a"])}),
        unmergeable(
            "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:a] map[name:b]]\n",
        ),
    );
    check_refused(
        document.clone(),
        json!({"$setElementOrder/pods": [{"image": "1"}], "pods": pods(&["b"])}),
        unmergeable("map: map[image:1] does not contain declared merge key: name"),
    );
    check_refused(
        document.clone(),
        json!({"$setElementOrder/pods": ["a"]}),
        bad_format("expected a map[string]interface {}, but received a string"),
    );
    check_refused(
        document.clone(),
        json!({"$setElementOrder/pods": null}),
        bad_format("expected a []interface {}, but received a %!s(<nil>)"),
    );
    check_refused(
        document.clone(),
        json!({"$setElementOrder/pods": [], "pods": 1.5}),
        bad_format("expected a []interface {}, but received a float64"),
    );
    check_refused(
        document,
        json!({"$setElementOrder": []}),
        bad_format("invalid patch format of setElementOrder list"),
    );
}

#[test]
fn items_that_cannot_be_merged_are_refused() {
    let document = json!({"pods": [{"name": "a"}], "keyless": [{"name": "a"}], "lists": [["a"]]});
    check_refused(
        document.clone(),
        json!({"pods": [{"image": "1"}]}),
        unmergeable("map: map[image:1] does not contain declared merge key: name"),
    );
    check_refused(
        document.clone(),
        json!({"pods": [{"image": "1", "$patch": "delete"}]}),
        unmergeable("map: map[$patch:delete image:1] does not contain declared merge key: name"),
    );
    check_refused(
        document.clone(),
        json!({"pods": [{"name": "a", "$patch": "merge"}]}),
        unmergeable("merging lists cannot yet be specified in the patch"),
    );
    check_refused(
        document.clone(),
        json!({"pods": ["a"]}),
        bad_format("list element types are not identical: [[map[name:a]] [a]]"),
    );
    check_refused(
        document.clone(),
        json!({"pods": [null]}),
        bad_format("list element types are not identical: [[map[name:a]] [<nil>]]"),
    );
    check_refused(
        document.clone(),
        json!({"keyless": [{"name": "b"}]}),
        unmergeable("cannot merge lists without merge key for struct"),
    );
    check_refused(
        document,
        json!({"lists": [["b"]]}),
        unmergeable("lists of lists are not supported"),
    );
}

#[test]
fn metadata_has_its_own_strategies() {
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid});
    check(
        json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x/a"], "ownerReferences": [owner("1")]}}),
        json!({"metadata": {
            "labels": {"b": "2", "a": null}, "annotations": {"c": "3"}, "finalizers": ["x/b"],
            "$deleteFromPrimitiveList/finalizers": ["x/a"],
            "ownerReferences": [{"uid": "1", "controller": true}, owner("2")]}}),
        json!({"metadata": {
            "labels": {"b": "2"}, "annotations": {"c": "3"}, "finalizers": ["x/b"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "1", "uid": "1", "controller": true}, owner("2")]}}),
    );
}

#[test]
fn a_strategic_merge_patch_is_an_object() {
    for (patch, why) in [
        (
            "[]",
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        ("{", "unexpected end of JSON input"),
    ] {
        let refused = Patch::parse_strategic(patch.as_bytes()).unwrap_err();
        assert_eq!(refused, bad_format(why));
    }
    check(json!({"text": "x"}), json!(null), json!({"text": "x"}));
    let twice = Patch::parse_strategic(br#"{"map":{"a":"1","a":"2"}}"#).unwrap();
    assert_eq!(twice.strict(), [r#"duplicate field "map.a""#]);
    assert_eq!(
        twice.strategic_document().as_deref(),
        Some("map[map:map[a:2]]")
    );
}

/// One item that is changed many times: the work is the product of the two, so it is limited.
#[test]
fn work_is_limited() {
    let tags: Vec<String> = (0..100).map(|tag| tag.to_string()).collect();
    let document = json!({"pods": [{"name": "a", "tags": tags}]});
    let change = |times: usize| {
        let patch = json!({"pods": vec![json!({"name": "a", "tags": ["x"]}); times]});
        let mut merge = Merge {
            steps: Steps::limited(STEPS_PER_ITEM * 10_000),
        };
        let mut document = document.clone();
        let fields = document.as_object_mut().unwrap();
        merge.fields(Some(SCHEMA.root()), fields, patch.as_object().unwrap())
    };
    assert_eq!(change(90), Ok(()));
    assert_eq!(
        change(110),
        Err(PatchError::NotApplicable(
            "the patch moves too much".to_owned()
        ))
    );
}

/// Long lists take time in proportion to their length: an item that is looked up by reading the list would not end here.
#[test]
fn long_lists_are_merged_at_once() {
    let pods = |image: &str| -> Value {
        let pod = |name: usize| json!({"name": name.to_string(), "image": image});
        (0..50_000).map(pod).collect()
    };
    check(
        json!({"pods": pods("1")}),
        json!({"pods": pods("2"), "$setElementOrder/pods": pods("2")}),
        json!({"pods": pods("2")}),
    );
}

/// The patch that turns one document into another, as kubectl computes it.
fn difference(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        match (old.get(name), value) {
            (Some(old), new) if old == new => {}
            (Some(Value::Object(_)), Value::Object(_)) if name == "whole" => {
                patch.insert(name.clone(), value.clone());
            }
            (Some(Value::Object(old)), Value::Object(new)) => {
                patch.insert(name.clone(), Value::Object(difference(old, new)));
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                list_difference(&mut patch, name, old, new);
            }
            _ => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    patch
}

fn list_difference(patch: &mut Map<String, Value>, name: &str, old: &[Value], new: &[Value]) {
    let key = match name {
        "pods" => "name",
        "ports" => "port",
        "tags" => {
            let missing = |from: &[Value], of: &[Value]| -> Vec<Value> {
                let missing = of.iter().filter(|item| !from.contains(item));
                missing.cloned().collect()
            };
            let added = missing(old, new);
            patch.insert(name.to_owned(), added.into());
            let removed = missing(new, old);
            patch.insert(format!("$deleteFromPrimitiveList/{name}"), removed.into());
            patch.insert(format!("$setElementOrder/{name}"), new.into());
            return;
        }
        _ => {
            patch.insert(name.to_owned(), new.into());
            return;
        }
    };
    let find = |list: &'_ [Value], item: &Value| -> Option<Value> {
        list.iter().find(|one| one[key] == item[key]).cloned()
    };
    let mut changes = Vec::new();
    for item in new {
        match find(old, item) {
            Some(old) if old == *item => {}
            Some(Value::Object(old)) => {
                let mut change = difference(&old, item.as_object().unwrap());
                change.insert(key.to_owned(), item[key].clone());
                changes.push(Value::Object(change));
            }
            _ => changes.push(item.clone()),
        }
    }
    for item in old.iter().filter(|item| find(new, item).is_none()) {
        changes.push(json!({key: item[key], "$patch": "delete"}));
    }
    let order: Value = new.iter().map(|item| json!({key: item[key]})).collect();
    patch.insert(name.to_owned(), changes.into());
    patch.insert(format!("$setElementOrder/{name}"), order);
}

fn text() -> impl Strategy<Value = Value> {
    "[abc]".prop_map(Value::from)
}

fn texts() -> impl Strategy<Value = Value> {
    let distinct = prop::sample::subsequence(vec!["a", "b", "c", "d"], 0..4).prop_shuffle();
    distinct.prop_map(|texts| json!(texts))
}

/// An object of some of these fields.
fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| prop::option::of(value).prop_map(move |value| Some((name, value?))))
        .collect();
    fields
        .prop_map(|fields| {
            let fields = fields.into_iter().flatten();
            Value::Object(
                fields
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
            )
        })
        .boxed()
}

/// A list of objects with distinct keys.
fn keyed(key: &'static str, item: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let keys = prop::sample::subsequence(vec!["a", "b", "c", "d"], 0..4).prop_shuffle();
    (keys, prop::collection::vec(item, 4))
        .prop_map(move |(keys, items)| {
            let item = |(name, mut item): (&str, Value)| {
                item[key] = json!(name);
                item
            };
            keys.into_iter().zip(items).map(item).collect()
        })
        .boxed()
}

fn document() -> BoxedStrategy<Value> {
    let two = || object(vec![("a", text().boxed()), ("b", text().boxed())]);
    let ports = keyed("port", object(vec![("protocol", text().boxed())]));
    let pod = object(vec![
        ("image", text().boxed()),
        ("tags", texts().boxed()),
        ("ports", ports),
    ]);
    object(vec![
        ("text", text().boxed()),
        ("map", two()),
        (
            "inner",
            object(vec![("a", text().boxed()), ("tags", texts().boxed())]),
        ),
        ("whole", two()),
        ("atomic", texts().boxed()),
        ("tags", texts().boxed()),
        ("pods", keyed("name", pod)),
    ])
}

/// Any value, with the names that patches use.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i8>().prop_map(Value::from),
        prop::sample::select(vec!["a", "b", "delete", "replace", "merge"]).prop_map(Value::from),
    ];
    let names = vec![
        "text",
        "inner",
        "whole",
        "atomic",
        "tags",
        "pods",
        "ports",
        "name",
        "port",
        "a",
        "$patch",
        "$retainKeys",
        "$setElementOrder/tags",
        "$setElementOrder/pods",
        "$setElementOrder",
        "$deleteFromPrimitiveList/tags",
        "$deleteFromPrimitiveList/pods",
        "$deleteFromPrimitiveList",
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(names.clone()), inner, 0..5).prop_map(
                |fields| fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            ),
        ]
    })
}

proptest! {
    #[test]
    fn a_difference_gives_the_other_document(old in document(), new in document()) {
        let patch = Value::Object(difference(old.as_object().unwrap(), new.as_object().unwrap()));
        prop_assert_eq!(&apply(&old, &patch).unwrap(), &new, "{}", patch);
        // Applied again it changes nothing.
        prop_assert_eq!(apply(&new, &patch).unwrap(), new, "{}", patch);
    }

    #[test]
    fn any_patch_applies_whole_or_not_at_all(old in document(), patch in anything()) {
        let _ = apply(&old, &patch);
    }

    #[test]
    fn a_patch_without_lists_and_directives_is_a_merge_patch(old in document(), changes in document()) {
        let flat = |name: &str| ["text", "map", "atomic"].contains(&name);
        let changes: Value = changes.as_object().unwrap().iter()
            .filter(|(name, _)| flat(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut merged = old.clone();
        json_patch::merge(&mut merged, &changes);
        prop_assert_eq!(apply(&old, &changes).unwrap(), merged);
    }
}
