//! managedFields of writes that are not applies.

use super::*;

/// Options of a request by this manager.
pub(super) fn by(manager: &str) -> CreateOptions {
    CreateOptions {
        field_manager: manager.to_owned(),
        ..CreateOptions::default()
    }
}

/// The entries of an object: manager, operation and version in one text, with the fields.
pub(super) fn owners(object: &Object) -> Vec<(String, Value)> {
    let entries = at(object, "/metadata/managedFields");
    let entries = entries.as_array().cloned().unwrap_or_default();
    let entry = |entry: &Value| {
        assert_eq!(entry["fieldsType"], "FieldsV1");
        let text = |field: &str| entry[field].as_str().unwrap_or_default();
        let version = text("apiVersion").trim_start_matches("test.example.com/");
        let mut who = format!("{} {} {version}", text("manager"), text("operation"));
        if !text("subresource").is_empty() {
            who.push(' ');
            who.push_str(text("subresource"));
        }
        (who, entry["fieldsV1"].clone())
    };
    entries.iter().map(entry).collect()
}

fn owned(who: &str, fields: Value) -> (String, Value) {
    (who.to_owned(), fields)
}

impl Fixture {
    async fn create_by(&self, manager: &str, document: Value) -> Object {
        let writes = self.widgets.writes();
        let options = by(manager);
        let created = writes.create(&self.ctx, NS, object(document), &options);
        created.await.unwrap().object
    }

    async fn merge_by(
        &self,
        endpoint: &Endpoint,
        manager: &str,
        sub: &str,
        patch: Value,
    ) -> Object {
        let patch = apiloom_meta::patch::Patch::parse_merge(patch.to_string().as_bytes()).unwrap();
        let writes = endpoint.writes();
        let options = by(manager);
        let written = writes.patch(
            WriteRequest::new(&self.ctx, NS, "a").at(sub).with(&options),
            &patch,
        );
        written.await.unwrap().object
    }
}

#[tokio::test]
async fn a_create_owns_what_is_sent_and_defaulted_but_not_what_the_rules_set() {
    let f = fixture().await;
    let document =
        json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"color": "red"}});
    let created = f.create_by("one", document).await;
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
        "f:spec": {".": {}, "f:color": {}, "f:size": {}}
    });
    assert_eq!(owners(&created), [owned("one Update v1", fields)]);
    assert!(at(&created, "/spec/serial").is_i64());
    assert_eq!(f.get("a").await.unwrap(), created);
}

#[tokio::test]
async fn a_write_takes_what_it_changes_and_nothing_else() {
    let f = fixture().await;
    f.create_by("one", widget("a", json!({"color": "red", "size": 2})))
        .await;
    // The size is sent with the same value.
    let changed = f
        .merge_by(
            &f.widgets,
            "two",
            "",
            json!({"spec": {"color": "blue", "size": 2, "weight": 3}}),
        )
        .await;
    assert_eq!(
        owners(&changed),
        [
            owned("one Update v1", json!({"f:spec": {".": {}, "f:size": {}}})),
            owned(
                "two Update v1",
                json!({"f:spec": {"f:color": {}, "f:weight": {}}})
            ),
        ]
    );
    let removed = f
        .merge_by(&f.widgets, "one", "", json!({"spec": {"weight": null}}))
        .await;
    assert_eq!(
        owners(&removed),
        [
            owned("one Update v1", json!({"f:spec": {".": {}, "f:size": {}}})),
            owned("two Update v1", json!({"f:spec": {"f:color": {}}})),
        ]
    );
}

#[tokio::test]
async fn fields_of_another_version_are_compared_in_that_version() {
    let f = fixture().await;
    f.create_by("one", widget("a", json!({"color": "red"})))
        .await;
    let changed = f
        .merge_by(&f.alpha, "two", "", json!({"spec": {"colour": "blue"}}))
        .await;
    assert_eq!(
        owners(&changed),
        [
            owned("one Update v1", json!({"f:spec": {".": {}, "f:size": {}}})),
            owned("two Update v1alpha1", json!({"f:spec": {"f:colour": {}}})),
        ]
    );
    // A manager has an entry for each version.
    let again = f
        .merge_by(&f.widgets, "two", "", json!({"spec": {"size": 7}}))
        .await;
    // They are in the order of their times.
    let mut names: Vec<String> = owners(&again).into_iter().map(|(who, _)| who).collect();
    names.sort();
    assert_eq!(
        names,
        ["one Update v1", "two Update v1", "two Update v1alpha1"]
    );
}

#[tokio::test]
async fn entries_of_versions_that_are_not_served_go() {
    let f = fixture().await;
    let mut created = f
        .create_by("one", widget("a", json!({"color": "red"})))
        .await;
    let mut entry = at(&created, "/metadata/managedFields/0");
    entry["apiVersion"] = json!("test.example.com/v0");
    created.meta_mut()["managedFields"] = json!([entry]);
    created.fields_mut()["spec"]["size"] = json!(5);
    let (updated, _) = f
        .widgets
        .writes()
        .update(WriteRequest::new(&f.ctx, NS, "a").with(&by("two")), created)
        .await
        .unwrap();
    assert_eq!(
        owners(&updated),
        [owned("two Update v1", json!({"f:spec": {"f:size": {}}}))]
    );
}

#[tokio::test]
async fn each_path_owns_only_the_fields_that_it_writes() {
    let f = fixture().await;
    let mut document = widget("a", json!({"color": "red"}));
    document["status"] = json!({"ready": true});
    let created = f.create_by("one", document).await;
    assert_eq!(owners(&created).len(), 1);
    assert_eq!(owners(&created)[0].1.get("f:status"), None);
    let patch = json!({"spec": {"color": "blue"}, "status": {"ready": true}, "metadata": {"labels": {"a": "b"}}});
    let changed = f.merge_by(&f.widgets, "two", "status", patch).await;
    let status = owned(
        "two Update v1 status",
        json!({"f:status": {".": {}, "f:ready": {}}}),
    );
    assert_eq!(owners(&changed)[1..], [status]);
    assert_eq!(at(&changed, "/spec/color"), "red");
}

#[tokio::test]
async fn a_client_may_clear_and_edit_entries_but_not_break_them() {
    let f = fixture().await;
    let created = f
        .create_by("one", widget("a", json!({"color": "red"})))
        .await;
    let put = async |entries: Value, size: i64| {
        let mut sent = f.get("a").await.unwrap();
        sent.fields_mut()["spec"]["size"] = json!(size);
        sent.meta_mut().insert("managedFields".to_owned(), entries);
        let writes = f.widgets.writes();
        let (put, _) = writes
            .update(WriteRequest::new(&f.ctx, NS, "a").with(&by("two")), sent)
            .await
            .unwrap();
        owners(&put)
    };
    let two = owned("two Update v1", json!({"f:spec": {"f:size": {}}}));
    // Entries that are not valid keep the present ones.
    let one = owned("one Update v1", json!({"f:spec": {".": {}, "f:color": {}}}));
    assert_eq!(
        put(json!([{"manager": "x", "operation": "Patch"}]), 2).await,
        [one, two.clone()]
    );
    // Valid ones replace them.
    let mut entry = at(&created, "/metadata/managedFields/0");
    entry["manager"] = json!("renamed");
    entry["fieldsV1"] = json!({"f:spec": {"f:color": {}}});
    let renamed = owned("renamed Update v1", json!({"f:spec": {"f:color": {}}}));
    assert_eq!(put(json!([entry]), 4).await, [renamed, two]);
    // One empty entry clears them, and so does an empty list; later writes do not begin anew.
    assert_eq!(put(json!([{}]), 5).await, []);
    assert_eq!(put(json!([]), 6).await, []);
    let again = f.create_by("one", widget("b", json!({}))).await;
    assert_eq!(owners(&again).len(), 1);
    let mut sent = f.get("b").await.unwrap();
    sent.meta_mut()
        .insert("managedFields".to_owned(), json!([]));
    let writes = f.widgets.writes();
    let written = writes
        .update(WriteRequest::new(&f.ctx, NS, "b").with(&by("two")), sent)
        .await;
    assert_eq!(owners(&written.unwrap().0), []);
}

/// Entries as a client sees them.
fn tree(object: &Object) -> Value {
    object.clone().into_tree()["metadata"]["managedFields"].clone()
}

#[tokio::test]
async fn patches_see_fields_as_objects() {
    use apiloom_meta::patch::{Patch, PatchError};
    type Parse = fn(&[u8]) -> Result<Patch, PatchError>;
    let f = fixture().await;
    f.create_by("one", widget("a", json!({"color": "red", "size": 1})))
        .await;
    let patch = async |parse: Parse, patch: Value| {
        let patch = parse(patch.to_string().as_bytes()).unwrap();
        let writes = f.widgets.writes();
        let options = by("two");
        let written = writes.patch(WriteRequest::new(&f.ctx, NS, "a").with(&options), &patch);
        written.await.map(|written| written.object)
    };
    let json_patch = Patch::parse_json as Parse;
    let at = "/metadata/managedFields/0/fieldsV1";
    // A field of the set is tested, removed and added.
    let changed = patch(
        json_patch,
        json!([
            {"op": "test", "path": at, "value": {"f:spec": {".": {}, "f:color": {}, "f:size": {}}}},
            {"op": "remove", "path": format!("{at}/f:spec/f:size")},
            {"op": "add", "path": format!("{at}/f:spec/f:weight"), "value": {}},
            {"op": "copy", "from": "/metadata/managedFields/0/manager", "path": "/metadata/annotations"},
            {"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}},
        ]),
    );
    let changed = changed.await.unwrap();
    let one = owned(
        "one Update v1",
        json!({"f:spec": {".": {}, "f:color": {}, "f:weight": {}}}),
    );
    let two = owned(
        "two Update v1",
        json!({"f:metadata": {"f:annotations": {".": {}, "f:a": {}}}}),
    );
    assert_eq!(owners(&changed), [one.clone(), two.clone()]);
    // A text is none of its values, also not one with their JSON.
    for (parse, bad) in [
        (
            json_patch,
            json!([{"op": "add", "path": at, "value": "{\"f:spec\":{}}"}]),
        ),
        (
            Patch::parse_merge,
            json!({"metadata": {"managedFields": [{"manager": "x", "operation": "Update", "apiVersion": "test.example.com/v1",
                "fieldsType": "FieldsV1", "fieldsV1": "{\"f:spec\":{}}"}]}}),
        ),
    ] {
        let error = patch(parse, bad).await.unwrap_err();
        assert_eq!(
            error.reason,
            Some(StatusReason::Invalid),
            "{}",
            error.message
        );
    }
    // Whole entries may be replaced, and other patches leave them.
    let mut entries = tree(&changed);
    entries[0]["fieldsV1"] = json!({"f:spec": {"f:color": {}}});
    let replace = json!({"metadata": {"managedFields": entries}});
    let replaced = patch(Patch::parse_merge, replace).await.unwrap();
    let less = owned("one Update v1", json!({"f:spec": {"f:color": {}}}));
    assert_eq!(owners(&replaced), [less.clone(), two.clone()]);
    let same = patch(Patch::parse_merge, json!({"metadata": {"labels": null}}));
    assert_eq!(same.await.unwrap(), replaced);
    let same = patch(
        json_patch,
        json!([{"op": "test", "path": "/metadata", "value": replaced.clone().into_tree()["metadata"]}]),
    );
    assert_eq!(same.await.unwrap(), replaced);
    let cleared = patch(
        json_patch,
        json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]),
    );
    assert_eq!(owners(&cleared.await.unwrap()), []);
}

#[tokio::test]
async fn sent_entries_with_names_that_are_not_valid_are_refused() {
    let f = fixture().await;
    let long = "m".repeat(129);
    let cases = [
        (
            &*long,
            "",
            "[0].manager: Too long: may not be more than 128 bytes",
        ),
        (
            "a\nb",
            "",
            "[0].manager: Invalid value: \"a\\nb\": invalid character U+000A (at position 1)",
        ),
        (
            "a",
            &"s".repeat(257),
            "[0].subresource: Too long: may not be more than 256 bytes",
        ),
    ];
    f.create_by("one", widget("a", json!({"size": 1}))).await;
    for (manager, subresource, complaint) in cases {
        let entries = json!([{"manager": manager, "operation": "Update", "apiVersion": "test.example.com/v1", "subresource": subresource,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:size": {}}}}]);
        let mut sent = f.get("a").await.unwrap();
        sent.meta_mut().insert("managedFields".to_owned(), entries);
        let writes = f.widgets.writes();
        let options = UpdateOptions::default();
        let updated = writes.update(WriteRequest::new(&f.ctx, NS, "a").with(&options), sent);
        let refusal = updated.await.unwrap_err();
        assert!(refusal.message.contains(complaint), "{}", refusal.message);
    }
}

#[tokio::test]
async fn a_write_without_effect_changes_no_entry_and_no_time() {
    let f = fixture().await;
    f.create_by("one", widget("a", json!({"color": "red"})))
        .await;
    let before = f.get("a").await.unwrap();
    let after = f
        .merge_by(&f.widgets, "two", "", json!({"spec": {"color": "red"}}))
        .await;
    assert_eq!(after, before);
}

#[tokio::test]
async fn the_fields_of_an_object_that_is_too_large_are_not_recorded() {
    let f = fixture().await;
    let mut document = widget("a", json!({}));
    document["metadata"]["annotations"] = json!({"a": "x".repeat(4 << 20)});
    let error = f.create(document).await.unwrap_err();
    // The annotations are refused before the size is.
    assert_eq!(error.reason, Some(StatusReason::Invalid));
}

#[tokio::test]
async fn an_eleventh_updater_merges_the_oldest() {
    let f = fixture().await;
    f.create_by("m00", widget("a", json!({}))).await;
    for number in 1..13 {
        let labels = json!({"metadata": {"labels": {format!("l{number}"): "x"}}});
        f.merge_by(&f.widgets, &format!("m{number:02}"), "", labels)
            .await;
    }
    let owners = owners(&f.get("a").await.unwrap());
    assert_eq!(owners.len(), 10);
    assert!(
        owners
            .iter()
            .any(|(who, _)| who == "ancient-changes Update v1"),
        "{owners:?}"
    );
}
