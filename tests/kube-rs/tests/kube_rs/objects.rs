//! Requests for objects, each kind of patch, subresources and discovery.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret, ServiceAccount};
use kube::api::{
    DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
    Preconditions,
};
use kube::core::GroupVersion;
use kube::discovery::{self, Discovery, Scope, verbs};
use kube::runtime::wait::{await_condition, conditions, delete::delete_and_finalize};
use kube::{Api, Error, ResourceExt};
use serde_json::{Value, json};

use crate::{Fixture, config_map, fields, flunder, item, refused, typed};

#[tokio::test(flavor = "multi_thread")]
async fn discovery_finds_built_in_and_own_kinds() {
    let fixture = Fixture::start().await;
    let client = &fixture.client;
    assert_eq!(client.apiserver_version().await.unwrap().major, "1");
    let kind = GroupVersionKind::gvk("wardle.example.com", "v1beta1", "Flunder");
    for found in [
        Discovery::new(client.clone()).run().await.unwrap(),
        Discovery::new(client.clone())
            .run_aggregated()
            .await
            .unwrap(),
    ] {
        let mut groups: Vec<&str> = found.groups().map(|group| group.name()).collect();
        groups.sort_unstable();
        let expected = [
            "",
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
            "apiregistration.k8s.io",
            "coordination.k8s.io",
            "events.k8s.io",
            "wardle.example.com",
        ];
        assert_eq!(groups, expected);
        let wardle = found.get("wardle.example.com").unwrap();
        assert_eq!(wardle.preferred_version(), Some("v1beta1"));
        let (resource, abilities) = found.resolve_gvk(&kind).unwrap();
        assert_eq!(resource.plural, "flunders");
        assert_eq!(abilities.scope, Scope::Namespaced);
        assert!(abilities.supports_operation(verbs::WATCH));
        let subresources = abilities.subresources.iter();
        let names: Vec<&str> = subresources.map(|(sub, _)| sub.plural.as_str()).collect();
        assert!(names.contains(&"status"), "{names:?}");
    }
    let (resource, _) = discovery::pinned_kind(client, &kind).await.unwrap();
    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    assert!(
        api.list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let version = GroupVersion::gv("wardle.example.com", "v1alpha1");
    let group = discovery::pinned_group(client, &version).await.unwrap();
    assert!(group.recommended_kind("Fischer").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_written_and_read() {
    let fixture = Fixture::start().await;
    let (maps, post) = (fixture.config_maps(), PostParams::default());
    let one = config_map("one", &json!({"a": "1"}));
    let created = maps.create(&post, &one).await.unwrap();
    assert!(created.metadata.uid.is_some());
    assert_eq!(maps.get("one").await.unwrap(), created);
    assert_eq!(maps.get_opt("nothing").await.unwrap(), None);
    refused(maps.get("nothing").await, 404, "NotFound");
    refused(maps.create(&post, &one).await, 409, "AlreadyExists");
    let bad = config_map("Not_A_Name", &json!({}));
    let status = refused(maps.create(&post, &bad).await, 422, "Invalid");
    assert_eq!(fields(&status), ["metadata.name"]);
    let dry = PostParams {
        dry_run: true,
        ..post.clone()
    };
    let not_kept = config_map("dry", &json!({}));
    maps.create(&dry, &not_kept).await.unwrap();
    assert_eq!(maps.get_opt("dry").await.unwrap(), None);

    // Dynamic objects of a kind that this program does not know.
    let flunders = fixture.flunders();
    let made: DynamicObject = typed(flunder("one", "two"));
    flunders.create(&post, &made).await.unwrap();
    let found = flunders.get("one").await.unwrap();
    assert_eq!(found.data["spec"]["flunderReference"], "two");
    let partial = flunders.get_metadata("one").await.unwrap();
    assert_eq!(partial.uid(), found.uid());
    let list = flunders.list_metadata(&ListParams::default()).await;
    assert_eq!(list.unwrap().items.len(), 1);

    let client = || fixture.client.clone();
    let secrets: Api<Secret> = Api::default_namespaced(client());
    let secret = typed(json!({"metadata": {"name": "one"}, "stringData": {"word": "sesame"}}));
    let secret = secrets.create(&post, &secret).await.unwrap();
    assert_eq!(secret.data.unwrap()["word"].0, b"sesame");
    let leases: Api<Lease> = Api::default_namespaced(client());
    let lease = typed(json!({"metadata": {"name": "one"}, "spec": {"holderIdentity": "me"}}));
    let lease = leases.create(&post, &lease).await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("me"));
    let events: Api<Event> = Api::default_namespaced(client());
    let event = typed(json!({
        "metadata": {"name": "one"},
        "involvedObject": {"kind": "ConfigMap", "name": "one", "namespace": "default"},
        "reason": "Tried", "message": "it was tried", "type": "Normal",
    }));
    events.create(&post, &event).await.unwrap();
    let of_one = ListParams::default().fields("involvedObject.name=one,reason=Tried");
    let found = events.list(&of_one).await.unwrap();
    assert_eq!(found.items[0].message.as_deref(), Some("it was tried"));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_have_pages_and_selectors() {
    let fixture = Fixture::start().await;
    let maps = fixture.config_maps();
    fixture.fill(25).await;
    let (mut names, mut remaining) = (Vec::new(), Vec::new());
    let mut params = ListParams::default().limit(10);
    loop {
        let page = maps.list(&params).await.unwrap();
        remaining.push(page.metadata.remaining_item_count);
        names.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, (0..25).map(item).collect::<Vec<_>>());
    assert_eq!(remaining, [Some(15), Some(5), None]);
    let even = ListParams::default().labels("even=true");
    assert_eq!(maps.list(&even).await.unwrap().items.len(), 13);
}

/// Four writers count in one object; none of their counts is lost.
#[tokio::test(flavor = "multi_thread")]
async fn conflicting_updates_are_refused_and_tried_again() {
    let fixture = Fixture::start().await;
    let (maps, post) = (fixture.config_maps(), PostParams::default());
    let first = config_map("counter", &json!({"n": "0"}));
    let first = maps.create(&post, &first).await.unwrap();
    let mut newer = first.clone();
    newer.labels_mut().insert("changed".into(), "yes".into());
    maps.replace("counter", &post, &newer).await.unwrap();
    let late = maps.replace("counter", &post, &first).await;
    refused(late, 409, "Conflict");
    let count = |maps: Api<ConfigMap>| async move {
        for _ in 0..10 {
            loop {
                let mut present = maps.get("counter").await.unwrap();
                let data = present.data.get_or_insert_default();
                let n: u32 = data["n"].parse().unwrap();
                data.insert("n".into(), (n + 1).to_string());
                match maps
                    .replace("counter", &PostParams::default(), &present)
                    .await
                {
                    Ok(_) => break,
                    Err(Error::Api(status)) if status.is_conflict() => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    };
    let writers: Vec<_> = (0..4).map(|_| tokio::spawn(count(maps.clone()))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let counted = maps.get("counter").await.unwrap();
    assert_eq!(counted.data.unwrap()["n"], "40");

    // An entry is created, then updated, at the version that was read.
    for n in ["1", "2"] {
        let mut entry = maps.entry("entry").await.unwrap();
        let entry = match entry.get_mut() {
            Some(_) => entry.and_modify(|present| {
                present.data = Some(BTreeMap::from([("n".into(), n.into())]));
            }),
            None => kube::api::entry::Entry::Occupied(
                entry.or_insert(|| config_map("entry", &json!({"n": n}))),
            ),
        };
        let kube::api::entry::Entry::Occupied(mut entry) = entry else {
            panic!("the entry is there");
        };
        entry.commit(&post).await.unwrap();
    }
    let found = maps.get("entry").await.unwrap();
    assert_eq!(found.data.unwrap()["n"], "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_of_every_type_are_taken() {
    let fixture = Fixture::start().await;
    let (maps, post) = (fixture.config_maps(), PostParams::default());
    let data = |map: ConfigMap| serde_json::to_value(map.data).unwrap();
    let params = PatchParams::default();
    let one = config_map("one", &json!({"a": "1", "b": "2"}));
    maps.create(&post, &one).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"a": null, "c": "3"}}));
    let merged = maps.patch("one", &params, &patch).await.unwrap();
    assert_eq!(data(merged), json!({"b": "2", "c": "3"}));
    let operations: kube::core::params::Patch<()> = Patch::Json(typed(json!([
        {"op": "test", "path": "/data/b", "value": "2"},
        {"op": "remove", "path": "/data/b"},
    ])));
    let patched = maps.patch("one", &params, &operations).await.unwrap();
    assert_eq!(data(patched), json!({"c": "3"}));
    let again = maps.patch("one", &params, &operations).await;
    refused(again, 422, "Invalid");
    let patch = Patch::Strategic(json!({"data": {"$patch": "replace", "d": "4"}}));
    let replaced = maps.patch("one", &params, &patch).await.unwrap();
    assert_eq!(data(replaced), json!({"d": "4"}));
    // A list with a merge key.
    let accounts: Api<ServiceAccount> = Api::default_namespaced(fixture.client.clone());
    let account = typed(json!({"metadata": {"name": "one"}, "secrets": [{"name": "a"}]}));
    accounts.create(&post, &account).await.unwrap();
    let patch = Patch::Strategic(json!({"secrets": [{"name": "b"}]}));
    let account = accounts.patch("one", &params, &patch).await.unwrap();
    assert_eq!(account.secrets.unwrap().len(), 2);
    // The kinds of a user have no strategic merge patches, as custom resources have none.
    let flunders = fixture.flunders();
    flunders
        .create(&post, &typed(flunder("one", "first")))
        .await
        .unwrap();
    let patch = Patch::Strategic(json!({"spec": {"flunderReference": "second"}}));
    let refusal = flunders.patch("one", &params, &patch).await;
    refused(refusal, 415, "UnsupportedMediaType");
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let partial = flunders.patch_metadata("one", &params, &patch).await;
    assert_eq!(partial.unwrap().labels()["a"], "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn applies_have_conflicts_and_can_be_forced() {
    let fixture = Fixture::start().await;
    let maps = fixture.config_maps();
    let apply = async |params: PatchParams, data: Value| {
        let document = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": data});
        maps.patch("one", &params, &Patch::Apply(document)).await
    };
    let data = |map: &ConfigMap| serde_json::to_value(&map.data).unwrap();
    let (first, second) = (PatchParams::apply("first"), PatchParams::apply("second"));
    apply(first.clone(), json!({"a": "1", "b": "1"}))
        .await
        .unwrap();
    let both = apply(second.clone(), json!({"a": "1", "c": "2"})).await;
    assert_eq!(data(&both.unwrap()), json!({"a": "1", "b": "1", "c": "2"}));
    let conflict = apply(second.clone(), json!({"b": "2"})).await;
    let status = refused(conflict, 409, "Conflict");
    assert_eq!(fields(&status), [".data.b"]);
    // The second manager no longer has `a`, which the first still has, and `c`, which it had alone.
    let taken = apply(second.force(), json!({"b": "2"})).await.unwrap();
    assert_eq!(data(&taken), json!({"a": "1", "b": "2"}));
    let managers = taken.managed_fields().iter();
    let mut managers: Vec<_> = managers
        .filter_map(|entry| entry.manager.as_deref())
        .collect();
    managers.sort_unstable();
    assert_eq!(managers, ["first", "second"]);
    let flunders = fixture.flunders();
    let patch = Patch::Apply(flunder("one", "two"));
    let applied = flunders.patch("one", &first, &patch).await.unwrap();
    assert_eq!(applied.data["spec"]["flunderReference"], "two");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_is_written_apart_from_the_object() {
    let fixture = Fixture::start().await;
    let (namespaces, post) = (fixture.namespaces(), PostParams::default());
    let condition =
        json!({"type": "Tried", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    let params = PatchParams::default();
    let written = namespaces
        .patch_status("default", &params, &patch)
        .await
        .unwrap();
    let mut present = written.clone();
    present.status = None;
    present.annotations_mut().insert("a".into(), "b".into());
    let replaced = namespaces
        .replace("default", &post, &present)
        .await
        .unwrap();
    assert_eq!(replaced.status, written.status);
    let flunders = fixture.flunders();
    let mut made = flunders
        .create(&post, &typed(flunder("one", "two")))
        .await
        .unwrap();
    made.data["spec"]["flunderReference"] = json!("other");
    made.data["status"] = json!({});
    let replaced = flunders.replace_status("one", &post, &made).await.unwrap();
    assert_eq!(replaced.data["spec"]["flunderReference"], "two");
    assert_eq!(replaced.data["status"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_deleted_with_finalizers_and_by_selectors() {
    let fixture = Fixture::start().await;
    let maps = fixture.config_maps();
    fixture.fill(6).await;
    let wrong = DeleteParams::default().preconditions(Preconditions {
        uid: Some("00000000-0000-0000-0000-000000000000".into()),
        ..Preconditions::default()
    });
    refused(maps.delete(&item(0), &wrong).await, 409, "Conflict");
    let even = ListParams::default().labels("even=true");
    maps.delete_collection(&DeleteParams::default(), &even)
        .await
        .unwrap();
    let params = PatchParams::default();
    let finalizers = |value: Value| Patch::Merge(json!({"metadata": {"finalizers": value}}));
    let hold = finalizers(json!(["example.com/wait"]));
    maps.patch(&item(1), &params, &hold).await.unwrap();
    let (api, name) = (maps.clone(), item(1));
    let deletion =
        tokio::spawn(
            async move { delete_and_finalize(api, &name, &DeleteParams::default()).await },
        );
    let is_going =
        |map: Option<&ConfigMap>| map.is_some_and(|map| map.metadata.deletion_timestamp.is_some());
    await_condition(maps.clone(), &item(1), is_going)
        .await
        .unwrap();
    maps.patch(&item(1), &params, &finalizers(Value::Null))
        .await
        .unwrap();
    deletion.await.unwrap().unwrap();
    let deleted = maps
        .delete(&item(3), &DeleteParams::default())
        .await
        .unwrap();
    let uid = deleted.either(
        |map| map.metadata.uid,
        |status| status.details.map(|details| details.uid),
    );
    let gone = conditions::is_deleted(uid.as_deref().unwrap());
    await_condition(maps.clone(), &item(3), gone).await.unwrap();
    let left = maps.list(&ListParams::default()).await.unwrap();
    let names: Vec<_> = left.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, [item(5)]);
}
