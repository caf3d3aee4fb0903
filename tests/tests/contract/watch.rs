//! Watch: contract section 7.

use serde_json::json;

use crate::*;

on_each_backend![
    c_128_a_watch_delivers_all_events_after_its_start_and_only_those,
    c_131_what_a_selector_sees_come_and_go_is_added_and_deleted,
    c_132_a_deleted_event_carries_the_last_state_and_a_newer_version,
];

async fn label(client: &Client, name: &str, tier: &str) -> Value {
    let answer = client
        .merge(
            &format!("{FLUNDERS}/{name}"),
            &json!({"metadata": {"labels": {"tier": tier}}}),
        )
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    answer.json()
}

async fn c_128_a_watch_delivers_all_events_after_its_start_and_only_those(on: Backend) {
    let (_server, client) = server(on);
    let first = created(&client, FLUNDERS, &flunder("a")).await;
    let mut expected = Vec::new();
    // Some before the watch begins, some after.
    for step in 0..10 {
        expected.push((
            "MODIFIED",
            label(&client, "a", &format!("early{step}")).await,
        ));
    }
    expected.push(("ADDED", created(&client, FLUNDERS, &flunder("b")).await));
    let mut watch = client
        .watch(&format!(
            "{FLUNDERS}?watch=1&resourceVersion={}",
            revision(&first)
        ))
        .await;
    for step in 0..10 {
        expected.push((
            "MODIFIED",
            label(&client, "b", &format!("late{step}")).await,
        ));
    }
    let mut last = revision(&first);
    for (kind, object) in expected {
        let event = watch.event().await;
        assert_eq!(event, json!({"type": kind, "object": object}));
        assert!(revision(&event["object"]) > last, "revisions rise");
        last = revision(&event["object"]);
    }
    // The other version sees the same events in its own form.
    let mut watch = client
        .watch(&format!(
            "{FLUNDERS_BETA}?watch=1&resourceVersion={}",
            revision(&first)
        ))
        .await;
    assert_eq!(
        watch.event().await["object"]["apiVersion"],
        "wardle.example.com/v1beta1"
    );
}

async fn c_131_what_a_selector_sees_come_and_go_is_added_and_deleted(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let path = format!(
        "{FLUNDERS}?watch=1&labelSelector=tier%3Dfront&resourceVersion={}",
        revision(&object)
    );
    let mut watch = client.watch(&path).await;
    let front = label(&client, "a", "front").await;
    assert_eq!(
        watch.event().await,
        json!({"type": "ADDED", "object": front})
    );
    let back = label(&client, "a", "back").await;
    let mut previous = front;
    previous["metadata"]["resourceVersion"] = back["metadata"]["resourceVersion"].clone();
    assert_eq!(
        watch.event().await,
        json!({"type": "DELETED", "object": previous}),
        "the state before, at the change's version"
    );
    label(&client, "a", "side").await;
    let front = label(&client, "a", "front").await;
    assert_eq!(
        watch.event().await,
        json!({"type": "ADDED", "object": front}),
        "what it does not select it does not see"
    );
}

async fn c_132_a_deleted_event_carries_the_last_state_and_a_newer_version(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let mut watch = client
        .watch(&format!(
            "{FLUNDERS}?watch=1&resourceVersion={}",
            revision(&object)
        ))
        .await;
    assert_eq!(
        client
            .delete(&format!("{FLUNDERS}/a"), &json!(null))
            .await
            .code,
        200
    );
    let event = watch.event().await;
    let mut expected = object.clone();
    expected["metadata"]["resourceVersion"] =
        event["object"]["metadata"]["resourceVersion"].clone();
    assert_eq!(event, json!({"type": "DELETED", "object": expected}));
    assert!(revision(&event["object"]) > revision(&object));
}
