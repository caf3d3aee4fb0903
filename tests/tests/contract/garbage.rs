//! The garbage collector of the server: dependents of deleted owners, foreground and orphaning deletions.

use crate::*;

on_each_backend![
    dependents_go_with_their_owners_and_others_stay,
    references_to_owners_that_are_gone_are_removed_beside_others,
    an_owner_that_never_existed_has_no_dependents,
    a_foreground_deletion_waits_for_dependents_that_block_it,
    circles_of_foreground_deletions_end,
    circles_whose_members_are_all_deleted_by_clients_end,
    orphans_stay_without_the_reference,
    owners_are_in_the_same_namespace_or_in_none,
    the_policy_of_a_dependent_is_its_own,
    what_a_killed_server_left_is_collected_after_its_start,
];

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str, owners: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}})
}

/// A reference to an object.
fn reference(owner: &Value) -> Value {
    json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"]})
}

/// A reference for which foreground deletions wait.
fn blocking(owner: &Value) -> Value {
    let mut reference = reference(owner);
    reference["blockOwnerDeletion"] = json!(true);
    reference
}

async fn create(client: &Client, name: &str, owners: &[Value]) -> Value {
    created(client, CONFIG_MAPS, &config_map(name, owners)).await
}

fn path(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

async fn until_gone(client: &Client, names: &[&str]) {
    for name in names {
        until(client, &path(name), |answer| answer.code == 404).await;
    }
}

/// Waits until the collector has done all work that earlier requests caused: it has also collected a new dependent of a
/// new owner.
async fn settle(client: &Client) {
    let owner = create(client, "settled", &[]).await;
    create(client, "settles", &[reference(&owner)]).await;
    client.delete(&path("settled"), &json!({})).await;
    until_gone(client, &["settled", "settles"]).await;
}

async fn delete(client: &Client, path: &str, policy: &str) -> Answer {
    let answer = client
        .delete(path, &json!({"propagationPolicy": policy}))
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    answer
}

/// The names of the owners of an object.
fn owners(object: &Value) -> Vec<&str> {
    let owners = object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    owners
        .map(|owner| owner["name"].as_str().unwrap())
        .collect()
}

async fn dependents_go_with_their_owners_and_others_stay(on: Backend) {
    let (_server, client) = server(on);
    let root = create(&client, "root", &[]).await;
    let child = create(&client, "child", &[reference(&root)]).await;
    create(&client, "grandchild", &[reference(&child)]).await;
    let mut of_other_kind = flunder("flunder");
    of_other_kind["metadata"]["ownerReferences"] = json!([reference(&root)]);
    let of_other_kind = created(&client, FLUNDERS, &of_other_kind).await;
    create(&client, "of-flunder", &[reference(&of_other_kind)]).await;
    let other = create(&client, "other", &[]).await;
    create(&client, "of-other", &[reference(&other)]).await;
    delete(&client, &path("root"), "Background").await;
    until_gone(&client, &["root", "child", "grandchild", "of-flunder"]).await;
    assert_eq!(client.get(&format!("{FLUNDERS}/flunder")).await.code, 404);
    settle(&client).await;
    for name in ["other", "of-other"] {
        assert_eq!(client.get(&path(name)).await.code, 200, "{name}");
    }
    // An owner that was made again is another one.
    client
        .delete(&path("other"), &json!({"propagationPolicy": "Background"}))
        .await;
    create(&client, "other", &[]).await;
    until_gone(&client, &["of-other"]).await;
}

async fn references_to_owners_that_are_gone_are_removed_beside_others(on: Backend) {
    let (_server, client) = server(on);
    let (a, b) = (
        create(&client, "a", &[]).await,
        create(&client, "b", &[]).await,
    );
    create(&client, "of-both", &[reference(&a), blocking(&b)]).await;
    delete(&client, &path("a"), "Background").await;
    let left = until(&client, &path("of-both"), |answer| {
        owners(&answer.json()) == ["b"]
    })
    .await
    .json();
    assert_eq!(left["metadata"]["ownerReferences"], json!([blocking(&b)]));
    delete(&client, &path("b"), "Background").await;
    until_gone(&client, &["of-both"]).await;
}

async fn an_owner_that_never_existed_has_no_dependents(on: Backend) {
    let (_server, client) = server(on);
    let a = create(&client, "a", &[]).await;
    for (field, value) in [
        ("uid", "00000000-0000-4000-8000-000000000000"),
        ("uid", "x"),
        ("name", "b"),
        // No object can have these.
        ("name", "a/b"),
        ("name", "a%b"),
        ("name", ".."),
    ] {
        let mut absent = reference(&a);
        absent[field] = json!(value);
        create(&client, "dependent", &[absent]).await;
        until_gone(&client, &["dependent"]).await;
    }
    // Whether an owner of a kind that is not served exists is not known.
    let mut unknown = reference(&a);
    unknown["kind"] = json!("Unknown");
    create(&client, "dependent", &[unknown]).await;
    settle(&client).await;
    assert_eq!(client.get(&path("dependent")).await.code, 200);
}

async fn a_foreground_deletion_waits_for_dependents_that_block_it(on: Backend) {
    let (_server, client) = server(on);
    let owner = create(&client, "owner", &[]).await;
    let held = |name: &str, owner: Value| {
        let mut object = config_map(name, &[owner]);
        object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        object
    };
    created(&client, CONFIG_MAPS, &held("blocks", blocking(&owner))).await;
    created(&client, CONFIG_MAPS, &held("does-not", reference(&owner))).await;
    create(&client, "free", &[blocking(&owner)]).await;
    let deleted = delete(&client, &path("owner"), "Foreground").await.json();
    assert_eq!(
        deleted["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    until_gone(&client, &["free"]).await;
    for name in ["blocks", "does-not"] {
        until(&client, &path(name), |answer| {
            answer.json()["metadata"]["deletionTimestamp"].is_string()
        })
        .await;
    }
    settle(&client).await;
    assert_eq!(client.get(&path("owner")).await.code, 200);
    let release = json!({"metadata": {"finalizers": null}});
    client.merge(&path("blocks"), &release).await;
    until_gone(&client, &["blocks", "owner"]).await;
    assert_eq!(
        client.get(&path("does-not")).await.code,
        200,
        "its own finalizer holds it"
    );
    client.merge(&path("does-not"), &release).await;
    until_gone(&client, &["does-not"]).await;
}

async fn circles_of_foreground_deletions_end(on: Backend) {
    let (_server, client) = server(on);
    let a = create(&client, "a", &[]).await;
    let b = create(&client, "b", &[blocking(&a)]).await;
    let c = create(&client, "c", &[blocking(&b)]).await;
    let owned = json!({"metadata": {"ownerReferences": [blocking(&c)]}});
    assert_eq!(client.merge(&path("a"), &owned).await.code, 200);
    delete(&client, &path("a"), "Foreground").await;
    until_gone(&client, &["a", "b", "c"]).await;
    // An object that owns itself is its own last dependent.
    let own = create(&client, "own", &[]).await;
    let owned = json!({"metadata": {"ownerReferences": [reference(&own)]}});
    assert_eq!(client.merge(&path("own"), &owned).await.code, 200);
    settle(&client).await;
    assert_eq!(client.get(&path("own")).await.code, 200);
    delete(&client, &path("own"), "Foreground").await;
    until_gone(&client, &["own"]).await;
}

async fn circles_whose_members_are_all_deleted_by_clients_end(on: Backend) {
    let (_server, client) = server(on);
    let a = create(&client, "a", &[]).await;
    let b = create(&client, "b", &[blocking(&a)]).await;
    let other = create(&client, "other", &[]).await;
    // A finalizer delays the collector, so that both deletions begin before it ends one.
    let owned = json!({"metadata": {"ownerReferences": [blocking(&b)], "finalizers": ["example.com/hold"]}});
    assert_eq!(client.merge(&path("a"), &owned).await.code, 200);
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    assert_eq!(client.merge(&path("b"), &held).await.code, 200);
    create(&client, "of-both", &[blocking(&a), reference(&other)]).await;
    let (one, two) = (path("a"), path("b"));
    tokio::join!(
        delete(&client, &one, "Foreground"),
        delete(&client, &two, "Foreground")
    );
    // The collector may free one of them, for whose end the other waits then.
    let release = async |name: &str| {
        let finalizers = json!(["example.com/hold"]);
        until(&client, &path(name), |answer| {
            answer.json()["metadata"]["finalizers"] == finalizers
        })
        .await;
        let released = json!({"metadata": {"finalizers": null}});
        assert_eq!(client.merge(&path(name), &released).await.code, 200);
    };
    tokio::join!(release("a"), release("b"));
    until_gone(&client, &["a", "b"]).await;
    settle(&client).await;
    assert_eq!(
        owners(&client.get(&path("of-both")).await.json()),
        ["other"]
    );
}

async fn orphans_stay_without_the_reference(on: Backend) {
    let (_server, client) = server(on);
    let (owner, other) = (
        create(&client, "owner", &[]).await,
        create(&client, "other", &[]).await,
    );
    create(&client, "child", &[blocking(&owner)]).await;
    create(&client, "of-both", &[reference(&owner), reference(&other)]).await;
    let deleted = delete(&client, &path("owner"), "Orphan").await.json();
    assert_eq!(deleted["metadata"]["finalizers"], json!(["orphan"]));
    until_gone(&client, &["owner"]).await;
    settle(&client).await;
    assert_eq!(owners(&client.get(&path("child")).await.json()), [""; 0]);
    assert_eq!(
        owners(&client.get(&path("of-both")).await.json()),
        ["other"]
    );
}

/// The event in a namespace about an owner in another one.
async fn reported(client: &Client, namespace: &str) -> Value {
    let events = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let find = |answer: &Answer| {
        let list = answer.json();
        let mut events = list["items"].as_array().unwrap().iter();
        let found = events.find(|event| event["reason"] == "OwnerRefInvalidNamespace");
        found.cloned()
    };
    let answer = until(client, &events, |answer| find(answer).is_some()).await;
    find(&answer).unwrap()
}

async fn owners_are_in_the_same_namespace_or_in_none(on: Backend) {
    let (_server, client) = server(on);
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}});
    let namespace = created(&client, "/api/v1/namespaces", &namespace).await;
    let owner = create(&client, "owner", &[]).await;
    let elsewhere = "/api/v1/namespaces/elsewhere/configmaps";
    created(
        &client,
        elsewhere,
        &config_map("foreign", &[reference(&owner)]),
    )
    .await;
    until(&client, &format!("{elsewhere}/foreign"), |answer| {
        answer.code == 404
    })
    .await;
    let uid = owner["metadata"]["uid"].as_str().unwrap();
    let note = |namespace: &str| {
        json!(format!(
            "ownerRef [v1/ConfigMap, namespace: {namespace}, name: owner, uid: {uid}] does not exist in namespace {namespace:?}"
        ))
    };
    let event = reported(&client, "elsewhere").await;
    assert_eq!(event["note"], note("elsewhere"));
    assert_eq!(event["regarding"]["name"], "foreign");
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["reportingController"], "garbage-collector-controller");
    // A cluster-scoped object cannot have an owner in a namespace: it is left alone.
    let fischer = json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer",
        "metadata": {"name": "fischer", "ownerReferences": [reference(&owner)]}});
    created(&client, FISCHERS, &fischer).await;
    let event = reported(&client, "default").await;
    assert_eq!(event["note"], note(""));
    assert_eq!(event["regarding"]["name"], "fischer");
    create(&client, "of-namespace", &[reference(&namespace)]).await;
    settle(&client).await;
    assert_eq!(client.get(&format!("{FISCHERS}/fischer")).await.code, 200);
    assert_eq!(client.get(&path("of-namespace")).await.code, 200);
    delete(&client, &path("owner"), "Background").await;
    settle(&client).await;
    assert_eq!(client.get(&format!("{FISCHERS}/fischer")).await.code, 200);
}

async fn the_policy_of_a_dependent_is_its_own(on: Backend) {
    let (_server, client) = server(on);
    let owner = create(&client, "owner", &[]).await;
    let mut middle = config_map("middle", &[reference(&owner)]);
    middle["metadata"]["finalizers"] = json!(["orphan"]);
    let middle = created(&client, CONFIG_MAPS, &middle).await;
    create(&client, "leaf", &[reference(&middle)]).await;
    delete(&client, &path("owner"), "Background").await;
    until_gone(&client, &["owner", "middle"]).await;
    settle(&client).await;
    assert_eq!(owners(&client.get(&path("leaf")).await.json()), [""; 0]);
}

async fn what_a_killed_server_left_is_collected_after_its_start(on: Backend) {
    let (mut cluster, client) = server(on);
    let root = create(&client, "root", &[]).await;
    for i in 0..100 {
        let child = create(&client, &format!("child-{i}"), &[blocking(&root)]).await;
        create(&client, &format!("grandchild-{i}"), &[blocking(&child)]).await;
    }
    create(&client, "other", &[]).await;
    delete(&client, &path("root"), "Foreground").await;
    // Somewhere in the middle.
    until(&client, CONFIG_MAPS, |answer| {
        answer.json()["items"].as_array().unwrap().len() < 150
    })
    .await;
    cluster.kill();
    cluster.start_again();
    let client = cluster.client();
    let names = |answer: &Answer| -> Vec<String> {
        let list = answer.json();
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    until(&client, CONFIG_MAPS, |answer| names(answer) == ["other"]).await;
}
