//! The watch cache: slow watchers, outdated and damaged objects, expiry, history.

use std::time::{Duration, Instant};

use apiloom_storage::Revision;
use apiloom_tests::is_cached;
use serde_json::json;

use crate::*;

on_each_backend![
    c_137_a_watcher_that_does_not_read_is_ended_and_delays_nobody,
    c_143_a_write_that_begins_with_a_stale_state_is_neither_refused_nor_left_out,
    c_146_an_object_whose_time_is_over_is_deleted_and_watchers_see_it,
    c_147_a_damaged_object_fails_lists_and_ends_watches,
    c_148_what_the_store_forgot_is_still_in_the_window,
    c_149_a_state_that_another_resource_brought_is_not_waited_for_in_vain,
    c_150_what_the_cache_hands_out_is_never_changed,
];

/// The key of a flunder in the default namespace.
fn key(cluster: &Cluster, name: &str) -> String {
    let prefix = cluster.prefix();
    format!("{prefix}/registry/wardle.example.com/flunders/default/{name}")
}

/// Changes a flunder's labels; returns the object.
async fn changed(client: &Client, name: &str, labels: Value) -> Value {
    let path = format!("{FLUNDERS}/{name}");
    let answer = client
        .merge(&path, &json!({"metadata": {"labels": labels}}))
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    answer.json()
}

async fn c_137_a_watcher_that_does_not_read_is_ended_and_delays_nobody(on: Backend) {
    let cluster = Cluster::start_alone(on, &["--watch-cache-history-bytes=1000000"]);
    let client = cluster.client();
    let start = revision(&created(&client, FLUNDERS, &flunder("a")).await);
    let path = format!("{FLUNDERS}?watch=1&resourceVersion={start}");
    // A separate connection, whose buffers fill up.
    let mut slow = cluster.client().watch(&path).await;
    let mut fast = cluster.client().watch(&path).await;
    let mut written = Vec::new();
    for round in 0..60_u32 {
        let large = round.to_string() + &"x".repeat(240_000);
        let patch = json!({"metadata": {"annotations": {"large": large}}});
        let answer = client.merge(&format!("{FLUNDERS}/a"), &patch).await;
        written.push(revision(&answer.json()));
        let event = fast.next().await.expect("whoever reads goes on");
        assert_eq!(Some(&revision(&event["object"])), written.last());
    }
    let mut seen = 0;
    while let Some(event) = slow.next().await {
        assert_eq!(event["type"], "MODIFIED", "it is not told why it ends");
        assert_eq!(
            revision(&event["object"]),
            written[seen],
            "nothing is left out"
        );
        seen += 1;
        if seen == written.len() {
            break;
        }
    }
    // Without the cache the watch continues from the store's history at any speed.
    assert_eq!(
        seen < written.len(),
        is_cached(),
        "{seen} of {}",
        written.len()
    );
}

async fn c_146_an_object_whose_time_is_over_is_deleted_and_watchers_see_it(on: Backend) {
    let mut cluster = Cluster::start_alone(on, &[]);
    let client = cluster.client();
    let stays = created(&client, FLUNDERS, &flunder("stays")).await;
    cluster.stop();
    // No kind of the server uses a time to live, so the store is used directly.
    let store = cluster.store().await;
    let mut expected = stays.clone();
    expected["metadata"]["name"] = json!("goes");
    expected["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    let bytes = expected.to_string().into();
    let ttl = Some(Duration::from_secs(1));
    let created = store
        .create(&key(&cluster, "goes"), bytes, ttl)
        .await
        .unwrap();
    store.close().await;
    cluster.start_again();
    let client = cluster.client();
    let path = format!("{FLUNDERS}?watch=1&resourceVersion={}", revision(&stays));
    let mut watch = client.watch(&path).await;
    expected["metadata"]["resourceVersion"] = json!(created.to_string());
    assert_eq!(
        watch.event().await,
        json!({"type": "ADDED", "object": expected})
    );
    let event = watch.event().await;
    let gone = revision(&event["object"]);
    assert!(gone > created.0, "a deletion has a revision of its own");
    expected["metadata"]["resourceVersion"] = json!(gone.to_string());
    assert_eq!(event, json!({"type": "DELETED", "object": expected}));
    assert_eq!(client.get(&format!("{FLUNDERS}/goes")).await.code, 404);
    assert_eq!(names(&client.get(FLUNDERS).await.json()), ["stays"]);
}

async fn c_147_a_damaged_object_fails_lists_and_ends_watches(on: Backend) {
    let mut cluster = Cluster::start_alone(on, &[]);
    let client = cluster.client();
    let good = created(&client, FLUNDERS, &flunder("a")).await;
    created(&client, FLUNDERS, &flunder("c")).await;
    let key = key(&cluster, "b");
    for bytes in [
        "{\"metadata\":",
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}"#,
    ] {
        cluster.stop();
        let store = cluster.store().await;
        let damaged = store.create(&key, bytes.into(), None).await.unwrap();
        store.close().await;
        cluster.start_again();
        let client = cluster.client();
        let check = |status: &Value| {
            assert_eq!(
                (&status["code"], &status["reason"]),
                (&json!(500), &json!("InternalError")),
                "{status}"
            );
            assert!(
                status["message"].as_str().unwrap().contains(&key),
                "{status}"
            );
        };
        for path in [
            FLUNDERS.to_owned(),
            format!("{FLUNDERS}?limit=500"),
            format!("{FLUNDERS}?resourceVersion=0"),
            format!("{FLUNDERS}?labelSelector=none"),
            format!("{FLUNDERS_BETA}?limit=2"),
            format!("{FLUNDERS}/b"),
        ] {
            let answer = client.get(&path).await;
            assert_eq!(answer.code, 500, "{path}: {}", answer.text());
            check(&answer.json());
        }
        let answer = client.delete(&format!("{FLUNDERS}/b"), &json!(null)).await;
        assert_eq!(
            answer.code,
            500,
            "what cannot be read is not deleted: {}",
            answer.text()
        );
        // Undamaged objects are served.
        assert_eq!(client.get(&format!("{FLUNDERS}/a")).await.json(), good);
        let first = client.get(&format!("{FLUNDERS}?limit=1")).await.json();
        assert_eq!(names(&first), ["a"]);
        let answer = client.get(FISCHERS).await;
        assert_eq!(answer.code, 200);
        // Watches that begin with the objects, and watches that read over the change.
        let mut watch = client.watch(&format!("{FLUNDERS}?watch=1")).await;
        assert_eq!(
            watch.event().await,
            json!({"type": "ADDED", "object": good})
        );
        let across = format!("{FLUNDERS}?watch=1&resourceVersion={}", damaged.0 - 1);
        for watch in [&mut watch, &mut client.watch(&across).await] {
            let event = watch.event().await;
            assert_eq!(
                (&event["type"], &event["object"]["kind"]),
                (&json!("ERROR"), &json!("Status"))
            );
            check(&event["object"]);
            assert_eq!(watch.next().await, None);
        }
        // After its removal everything works again.
        cluster.stop();
        let store = cluster.store().await;
        store.delete_if(&key, damaged).await.unwrap();
        store.close().await;
        cluster.start_again();
        assert_eq!(names(&cluster.client().list(FLUNDERS).await), ["a", "c"]);
    }
}

/// An embedded store does not compact history this young, so this runs with etcd only.
async fn c_148_what_the_store_forgot_is_still_in_the_window(on: Backend) {
    let cluster = Cluster::start_alone(on, &[]);
    let client = cluster.client();
    let first = created(&client, FLUNDERS, &flunder("a")).await;
    created(&client, FLUNDERS, &flunder("b")).await;
    let before = client.get(FLUNDERS).await.json();
    let page = client.get(&format!("{FLUNDERS}?limit=1")).await.json();
    let mut written = Vec::new();
    for round in 0..120 {
        written.push(changed(&client, "a", json!({"round": round.to_string()})).await);
    }
    let is_compacted = is_cached() && on != Backend::Embedded;
    if is_compacted {
        let store = cluster.store().await;
        let newest = revision(written.last().unwrap());
        // The cache has everything before the store compacts it.
        client.get(FLUNDERS).await;
        store.compact(Revision(newest)).await.unwrap();
    }
    let path = format!("{FLUNDERS}?watch=1&resourceVersion={}", revision(&first));
    let mut watch = client.watch(&path).await;
    assert_eq!(watch.event().await["object"]["metadata"]["name"], "b");
    for object in &written {
        assert_eq!(
            watch.event().await,
            json!({"type": "MODIFIED", "object": object})
        );
    }
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = client
        .get(&format!("{FLUNDERS}?limit=1&continue={token}"))
        .await;
    let exact = format!(
        "resourceVersion={}&resourceVersionMatch=Exact",
        revision(&before)
    );
    let exact = client.get(&format!("{FLUNDERS}?{exact}")).await;
    if is_compacted {
        // The window is only for watches: states before the compaction are dropped with it.
        assert_eq!((rest.code, exact.code), (410, 410), "{}", rest.text());
        return;
    }
    assert_eq!(rest.code, 200, "{}", rest.text());
    assert_eq!(rest.json()["items"][0], before["items"][1]);
    assert_eq!(exact.json(), before);
}

async fn c_150_what_the_cache_hands_out_is_never_changed(on: Backend) {
    let (_cluster, client) = server(on);
    let mut object = flunder("a");
    object["metadata"]["labels"] = json!({"z": "1", "a": "1"});
    object["metadata"]["annotations"] = json!({"escaped": "<&>"});
    object["spec"] = json!({"reference": "r"});
    let start = revision(&created(&client, FLUNDERS, &flunder("first")).await);
    created(&client, FLUNDERS, &object).await;
    let item = format!("{FLUNDERS}/a");
    let everything = async || {
        let mut watch = client
            .watch(&format!("{FLUNDERS}?watch=1&resourceVersion={start}"))
            .await;
        let mut bytes = vec![watch.line().await.unwrap()];
        for path in [
            item.clone(),
            format!("{item}?resourceVersion=0"),
            format!("{FLUNDERS}?limit=5"),
        ] {
            bytes.push(client.get(&path).await.text());
        }
        // The revision of a list may increase by itself; its items may not change.
        let list = bytes.last_mut().unwrap();
        *list = list.split_once("\"items\":").unwrap().1.to_owned();
        bytes
    };
    let before = everything().await;
    let expected = before[1].trim_end();
    assert_eq!(
        before[0],
        format!("{{\"type\":\"ADDED\",\"object\":{expected}}}\n"),
        "one form of the bytes"
    );
    assert_eq!(before[2].trim_end(), expected);

    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    for accept in [table, partial, "application/yaml"] {
        let answer = client.call("GET", &item, &[("accept", accept)], "").await;
        assert_eq!(answer.code, 200);
    }
    for path in [
        format!("{FLUNDERS_BETA}/a"),
        FLUNDERS_BETA.to_owned(),
        format!("{item}?pretty=1"),
    ] {
        assert_eq!(client.get(&path).await.code, 200);
    }
    // Writes without effect: a dry run, a refusal, a conflict, no change.
    let patch = json!({"metadata": {"labels": {"z": "2"}}, "spec": {"reference": "other"}});
    assert_eq!(
        client
            .merge(&format!("{item}?dryRun=All"), &patch)
            .await
            .code,
        200
    );
    let patch = json!({"metadata": {"labels": {"z": "2"}}, "spec": {"referenceType": "Nothing"}});
    assert_eq!(client.merge(&item, &patch).await.code, 422);
    let patch = json!({"metadata": {"labels": {"z": "2"}, "resourceVersion": start.to_string()}});
    assert_eq!(client.merge(&item, &patch).await.code, 409);
    assert_eq!(
        client
            .merge(&format!("{FLUNDERS_BETA}/a"), &json!({}))
            .await
            .code,
        200
    );
    assert_eq!(
        client
            .delete(&format!("{item}?dryRun=All"), &json!(null))
            .await
            .code,
        200
    );
    assert_eq!(everything().await, before);
    // A write with an effect does not change responses in progress.
    let mut late = client
        .watch(&format!("{FLUNDERS}?watch=1&resourceVersion={start}"))
        .await;
    changed(&client, "a", json!({"z": "2"})).await;
    assert_eq!(late.line().await.unwrap(), before[0]);
    assert_ne!(client.get(&item).await.text(), before[1]);
}

async fn c_143_a_write_that_begins_with_a_stale_state_is_neither_refused_nor_left_out(on: Backend) {
    let (cluster, one) = server(on);
    // One server's latest write is not yet in the other's cache.
    let (_replica, other) = another(&cluster, &one);
    let (a, b) = (format!("{FLUNDERS}/a"), format!("{FLUNDERS}/b"));
    created(&one, FLUNDERS, &flunder("a")).await;
    let labelled = |turn: &str| json!({"metadata": {"labels": {"turn": turn}}});
    for round in 0..10 {
        // The other's cache has `rest`, or soon will, while the store has `one`.
        let rest = other.merge(&a, &labelled("rest")).await.json();
        let now = one.merge(&a, &labelled("one")).await.json();
        let back = other.merge(&a, &labelled("rest")).await;
        assert_eq!(back.code, 200, "{}", back.text());
        let back = back.json();
        assert!(
            revision(&back) > revision(&now),
            "round {round}: it was left out"
        );
        assert_eq!(one.get(&a).await.json(), back);

        // An update of the stored state has no conflict, one of the older state has.
        let mut update = one.merge(&a, &labelled("one")).await.json();
        update["spec"] = json!({"reference": round.to_string()});
        let updated = other.put(&a, &update).await;
        assert_eq!(updated.code, 200, "{}", updated.text());
        assert_eq!(other.put(&a, &rest).await.code, 409);

        // A write without a change is compared with the stored state.
        let now = one.merge(&a, &labelled("two")).await.json();
        let same = other.merge(&a, &labelled("two")).await.json();
        assert_eq!(same, now);

        // Patches, deletions and their preconditions find present objects and do not find deleted ones.
        let object = created(&one, FLUNDERS, &flunder("b")).await;
        let patched = other.merge(&b, &labelled("rest")).await;
        assert_eq!(patched.code, 200, "{}", patched.text());
        let last = one.merge(&b, &labelled("one")).await.json();
        let of = |object: &Value| {
            json!({"preconditions": {"uid": object["metadata"]["uid"],
                "resourceVersion": object["metadata"]["resourceVersion"]}})
        };
        assert_eq!(other.delete(&b, &of(&object)).await.code, 409);
        let deleted = other.delete(&b, &of(&last)).await;
        assert_eq!(deleted.code, 200, "{}", deleted.text());
        assert_eq!(one.merge(&b, &labelled("one")).await.code, 404);
        assert_eq!(one.delete(&b, &json!(null)).await.code, 404);
    }
}

async fn c_149_a_state_that_another_resource_brought_is_not_waited_for_in_vain(on: Backend) {
    let (cluster, client) = server(on);
    let (_replica, reader) = another(&cluster, &client);
    created(&client, FLUNDERS, &flunder("a")).await;
    let began = Instant::now();
    for round in 0..20 {
        // There are no changes of fischers: the cache has to ask for the revision of the store.
        let object = changed(&client, "a", json!({"round": round.to_string()})).await;
        let version = revision(&object);
        let get = reader
            .get(&format!("{FLUNDERS}/a?resourceVersion={version}"))
            .await;
        assert_eq!(get.json(), object);
        for query in [
            format!("resourceVersion={version}"),
            format!("resourceVersion={version}&resourceVersionMatch=Exact"),
        ] {
            let answer = reader.get(&format!("{FISCHERS}?{query}")).await;
            assert_eq!(answer.code, 200, "{}", answer.text());
            assert!(revision(&answer.json()) >= version);
        }
        let query = format!(
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={version}"
        );
        let path = format!("{FISCHERS}?watch=1&allowWatchBookmarks=true&{query}");
        let end = reader.watch(&path).await.next().await.unwrap();
        assert_eq!(end["type"], "BOOKMARK", "{end}");
        assert!(revision(&end["object"]) >= version);
    }
    // If each of these sixty reads had waited for its timeout, it would take minutes.
    assert!(began.elapsed() < Duration::from_secs(60));
}
