//! Watch: start, events, bookmarks, framing, timeouts.

use std::time::{Duration, Instant};

use apiloom_tests::{Watch, WebSocket, is_cached};
use base64::Engine as _;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::*;

on_each_backend![
    c_125_a_watch_from_nowhere_begins_with_every_object_in_the_order_of_keys,
    c_126_one_bookmark_ends_the_initial_events,
    c_127_initial_events_and_not_older_than_go_together,
    c_128_a_watch_delivers_all_events_after_its_start_and_only_those,
    c_129_a_start_that_is_too_old_is_one_error_event,
    c_130_a_start_in_the_future_is_waited_for_and_a_state_of_the_future_is_an_error,
    c_131_what_a_selector_sees_come_and_go_is_added_and_deleted,
    c_132_a_deleted_event_carries_the_last_state_and_a_newer_version,
    c_133_a_bookmark_comes_before_the_end_and_never_ahead_of_an_event,
    c_134_a_timeout_ends_the_stream_cleanly,
    c_135_events_are_lines_that_begin_with_their_type,
    c_136_a_watch_over_websocket_sends_one_event_per_message,
    c_138_a_server_that_stops_ends_streams_without_an_error,
    c_139_there_is_no_yaml_watch,
    c_140_an_error_is_a_status_in_every_form,
    a_watch_begins_its_answer_before_there_is_an_event,
    a_watch_knows_no_limit_and_no_continue,
    every_selective_watcher_sees_its_own,
];

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

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

/// Reads one event per object; each is the addition of the next one.
async fn check_added(watch: &mut Watch, objects: &[Value]) {
    for object in objects {
        let event = watch.next().await.expect("the watch goes on");
        assert_eq!(event, json!({"type": "ADDED", "object": object}));
    }
}

/// Reads the bookmark that ends the initial events, and returns its revision.
async fn check_end_of_initial_events(watch: &mut Watch, api_version: &str) -> u64 {
    let event = watch.next().await.expect("the watch goes on");
    let revision = revision(&event["object"]);
    let metadata = json!({"resourceVersion": revision.to_string(), "annotations": {"k8s.io/initial-events-end": "true"}});
    let object = json!({"kind": "Flunder", "apiVersion": api_version, "metadata": metadata});
    assert_eq!(event, json!({"type": "BOOKMARK", "object": object}));
    revision
}

/// Objects in key order, created in another order.
async fn objects(client: &Client) -> Vec<Value> {
    let mut objects = Vec::new();
    for name in ["c", "a", "b-1", "b", "b.1"] {
        objects.push(created(client, FLUNDERS, &flunder(name)).await);
    }
    objects.sort_by_key(|object| object["metadata"]["name"].as_str().unwrap().to_owned());
    objects
}

async fn c_125_a_watch_from_nowhere_begins_with_every_object_in_the_order_of_keys(on: Backend) {
    let (_cluster, client) = server(on);
    let objects = objects(&client).await;
    let mut watches = Vec::new();
    for query in ["", "&resourceVersion=", "&resourceVersion=0"] {
        // Any state is accepted for the last one, and all of this was shown to the watches before.
        let mut watch = client.watch(&format!("{FLUNDERS}?watch=1{query}")).await;
        check_added(&mut watch, &objects).await;
        watches.push(watch);
    }
    // No bookmark comes between, and each continues with the next change.
    let next = label(&client, "b", "front").await;
    for watch in &mut watches {
        let event = watch.next().await.unwrap();
        assert_eq!(event, json!({"type": "MODIFIED", "object": next}));
    }
    // A watch without initial events gets none.
    for version in ["", "0"] {
        let query = format!(
            "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion={version}"
        );
        let mut watch = client.watch(&format!("{FLUNDERS}?watch=1&{query}")).await;
        let next = label(&client, "b", &format!("side{version}")).await;
        let event = watch.next().await.unwrap();
        assert_eq!(event, json!({"type": "MODIFIED", "object": next}));
    }
}

async fn c_126_one_bookmark_ends_the_initial_events(on: Backend) {
    let (_cluster, client) = server(on);
    let mut objects = objects(&client).await;
    let newest = objects.iter().map(revision).max().unwrap();
    let mut watches = Vec::new();
    for query in [
        String::new(),
        "&resourceVersion=0".to_owned(),
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0".to_owned(),
        format!(
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={newest}"
        ),
    ] {
        let path = format!("{FLUNDERS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=3{query}");
        let mut watch = client.watch(&path).await;
        check_added(&mut watch, &objects).await;
        let end = check_end_of_initial_events(&mut watch, "wardle.example.com/v1alpha1").await;
        assert!(
            end >= newest,
            "everything up to {newest} is shown, not {end}"
        );
        watches.push(watch);
    }
    // A selector without matches, and the other version.
    let path = format!("{FLUNDERS_BETA}?watch=1&allowWatchBookmarks=true&labelSelector=none");
    let mut watch = client.watch(&path).await;
    check_end_of_initial_events(&mut watch, "wardle.example.com/v1beta1").await;
    // Without initial events there is no bookmark for their end.
    let query = format!("allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={newest}");
    watches.push(client.watch(&format!("{FLUNDERS}?watch=1&{query}")).await);

    let next = label(&client, "c", "front").await;
    let last = objects.last_mut().unwrap();
    *last = next;
    for events in futures_util::future::join_all(watches.iter_mut().map(Watch::rest)).await {
        let (event, bookmarks): (Vec<&Value>, Vec<&Value>) =
            events.iter().partition(|event| event["type"] != "BOOKMARK");
        assert_eq!(event, [&json!({"type": "MODIFIED", "object": last})]);
        assert!(!bookmarks.is_empty(), "one comes before the end");
        for bookmark in bookmarks {
            assert!(
                bookmark["object"]["metadata"]["annotations"].is_null(),
                "{bookmark}"
            );
        }
    }
}

async fn c_127_initial_events_and_not_older_than_go_together(on: Backend) {
    let (_cluster, client) = server(on);
    let requires = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    let unless = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
    let with_continue = "resourceVersionMatch is forbidden when continue is provided";
    let forbidden = |why| forbidden(why, "resourceVersionMatch");
    let unsupported = unsupported(
        r#""Exact": supported values: "NotOlderThan""#,
        "resourceVersionMatch",
    );
    for (query, causes) in [
        ("sendInitialEvents=true", vec![forbidden(requires)]),
        (
            "sendInitialEvents=false&resourceVersion=5",
            vec![forbidden(requires)],
        ),
        (
            "sendInitialEvents=true&resourceVersionMatch=Exact",
            vec![forbidden(requires), unsupported],
        ),
        (
            "resourceVersionMatch=NotOlderThan&resourceVersion=5",
            vec![forbidden(unless)],
        ),
        (
            "resourceVersionMatch=Exact",
            vec![forbidden(unless), unsupported],
        ),
        (
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=a",
            vec![forbidden(with_continue)],
        ),
    ] {
        let answer = client.get(&format!("{FLUNDERS}?watch=1&{query}")).await;
        check_options(&answer, &causes);
    }
}

async fn c_129_a_start_that_is_too_old_is_one_error_event(on: Backend) {
    let mut cluster = Cluster::start_alone(on, &[]);
    let client = cluster.client();
    let old = revision(&created(&client, FLUNDERS, &flunder("a")).await);
    created(&client, FLUNDERS, &flunder("b")).await;
    let new = revision(&label(&client, "a", "front").await);
    cluster.forget(new).await;
    let client = cluster.client();
    for (path, accept) in [
        (FLUNDERS, "application/json"),
        (FLUNDERS_BETA, "application/json"),
        (FLUNDERS, TABLE),
        (FLUNDERS, PARTIAL),
    ] {
        let path = format!("{path}?watch=1&resourceVersion={old}");
        let mut watch = client.watch_as(&path, accept).await;
        let event = watch.next().await.unwrap();
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("too old resource version: {old} ({new})"), "reason": "Expired", "code": 410,
        });
        assert_eq!(event, json!({"type": "ERROR", "object": status}));
        assert_eq!(watch.next().await, None);
    }
    // The kept history begins right after it.
    let mut watch = client
        .watch(&format!("{FLUNDERS}?watch=1&resourceVersion={new}"))
        .await;
    let next = label(&client, "b", "back").await;
    assert_eq!(
        watch.event().await,
        json!({"type": "MODIFIED", "object": next})
    );
}

/// Checks the error event for a state that does not exist yet.
fn check_future(event: &Value, requested: u64) {
    let message = event["object"]["message"].as_str().unwrap();
    let start = format!("Timeout: Too large resource version: {requested}, current: ");
    assert!(message.starts_with(&start), "{message}");
    let cause =
        json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "Timeout", "details": {"causes": [cause], "retryAfterSeconds": 1}, "code": 504,
    });
    assert_eq!(*event, json!({"type": "ERROR", "object": status}));
}

async fn c_130_a_start_in_the_future_is_waited_for_and_a_state_of_the_future_is_an_error(
    on: Backend,
) {
    let (_cluster, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    // The server makes its APIServices meanwhile, which are fewer.
    let start = revision(&object) + 50;
    let path = format!("{FLUNDERS}?watch=1&resourceVersion={start}&allowWatchBookmarks=true");
    let mut watch = client.watch(&path).await;
    let mut written = Vec::new();
    for step in 0..60 {
        written.push(label(&client, "a", &format!("step{step}")).await);
    }
    let later: Vec<&Value> = written
        .iter()
        .filter(|object| revision(object) > start)
        .collect();
    assert!(later.len() < 60 && !later.is_empty());
    for object in later {
        let event = watch.next().await.unwrap();
        assert_eq!(event, json!({"type": "MODIFIED", "object": object}));
    }
    let future = start + 1_000_000;
    let query = format!(
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={future}"
    );
    for bookmarks in ["", "&allowWatchBookmarks=true"] {
        let mut watch = client
            .watch(&format!("{FLUNDERS}?watch=1&{query}{bookmarks}"))
            .await;
        check_future(&watch.next().await.unwrap(), future);
        assert_eq!(watch.next().await, None);
    }
}

async fn c_133_a_bookmark_comes_before_the_end_and_never_ahead_of_an_event(on: Backend) {
    let (cluster, client) = server(on);
    let start = revision(&created(&client, FLUNDERS, &flunder("a")).await);
    let path = format!("{FLUNDERS}?watch=1&resourceVersion={start}&timeoutSeconds=4");
    let with = format!("{path}&allowWatchBookmarks=true");
    let idle = format!("{with}&fieldSelector=metadata.name%3Dnobody");
    let opened = Instant::now();
    let mut with_bookmarks = client.watch(&with).await;
    let mut without = client.watch(&path).await;
    let mut idle = client.watch(&idle).await;
    // A separate connection, which is not read until the bookmark is due.
    let mut late = cluster.client().watch(&with).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let writer = tokio::spawn(write_large(client.clone(), stopped));
    let late = async {
        tokio::time::sleep_until((opened + Duration::from_millis(2_100)).into()).await;
        late.rest().await
    };
    let (with_bookmarks, without, idle, late) =
        tokio::join!(with_bookmarks.rest(), without.rest(), idle.rest(), late);
    stop.send_replace(true);
    let written = writer.await.unwrap();
    let is_bookmark = |event: &&Value| event["type"] == "BOOKMARK";
    assert_eq!(
        without.iter().find(is_bookmark),
        None,
        "only where it is wanted"
    );
    for events in [&with_bookmarks, &idle] {
        let bookmark = events
            .iter()
            .find(is_bookmark)
            .expect("shortly before the end");
        let metadata = json!({"resourceVersion": "$RV"});
        let object = json!({"kind": "Flunder", "apiVersion": "wardle.example.com/v1alpha1", "metadata": metadata});
        assert!(
            matches(&json!({"type": "BOOKMARK", "object": object}), bookmark),
            "{bookmark}"
        );
    }
    for events in [&with_bookmarks, &without, &late] {
        check_delivery(events, start, &written);
    }
    // The cache knows the progress of idle watches; without it the store's next progress is needed.
    let last = revision(&idle.last().unwrap()["object"]);
    assert!(last > start || last == start && !is_cached());
}

/// Changes an object until it is stopped, at first with objects too large for the buffers of a connection; returns the
/// revisions.
async fn write_large(client: Client, stopped: tokio::sync::watch::Receiver<bool>) -> Vec<u64> {
    let mut revisions = Vec::new();
    while !*stopped.borrow() {
        let size = if revisions.len() < 50 { 240_000 } else { 0 };
        let text = revisions.len().to_string() + &"x".repeat(size);
        let patch = json!({"metadata": {"annotations": {"large": text}}});
        let answer = client.merge(&format!("{FLUNDERS}/a"), &patch).await;
        assert_eq!(answer.code, 200, "{}", answer.text());
        revisions.push(revision(&answer.json()));
        tokio::time::sleep(Duration::from_millis(if size > 0 { 0 } else { 20 })).await;
    }
    revisions
}

/// Asserts that the first writes were delivered, once and in order, and that everything up to a bookmark was.
fn check_delivery(events: &[Value], start: u64, written: &[u64]) {
    let mut delivered = start;
    let mut expected = written.iter().peekable();
    for event in events {
        let revision = revision(&event["object"]);
        if event["type"] == "BOOKMARK" {
            assert!(revision >= delivered, "bookmarks do not go back");
            let ahead = expected.peek().is_some_and(|next| **next <= revision);
            assert!(
                !ahead,
                "a bookmark at {revision} ahead of {:?}",
                expected.peek()
            );
        } else {
            assert_eq!(Some(&revision), expected.next());
            assert!(revision > delivered, "behind a bookmark come newer events");
        }
        delivered = revision;
    }
    assert!(delivered > start);
}

async fn c_134_a_timeout_ends_the_stream_cleanly(on: Backend) {
    let (cluster, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let http1 = cluster.client_of_http1();
    for client in [client, http1] {
        let started = Instant::now();
        let mut watch = client
            .watch(&format!("{FLUNDERS}?watch=1&timeoutSeconds=1"))
            .await;
        // A broken stream panics here.
        let events = watch.rest().await;
        assert_eq!(events, [json!({"type": "ADDED", "object": object})]);
        assert!(started.elapsed() >= Duration::from_secs(1));
        assert_eq!(client.get(&format!("{FLUNDERS}/a")).await.code, 200);
    }
}

async fn c_135_events_are_lines_that_begin_with_their_type(on: Backend) {
    let (_cluster, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    for (accept, kind) in [
        ("application/json", "Flunder"),
        (TABLE, "Table"),
        (PARTIAL, "PartialObjectMetadata"),
    ] {
        let path = format!("{FLUNDERS}?watch=1&allowWatchBookmarks=true&pretty=true");
        let mut watch = client.watch_as(&path, accept).await;
        for event in ["ADDED", "BOOKMARK"] {
            let line = watch.line().await.unwrap();
            let start = format!(r#"{{"type":"{event}","object":{{"kind":"{kind}","apiVersion":"#);
            assert!(line.starts_with(&start) && line.ends_with("}}\n"), "{line}");
        }
    }
}

async fn c_136_a_watch_over_websocket_sends_one_event_per_message(on: Backend) {
    let (mut cluster, client) = server(on);
    for name in ["a", "b"] {
        created(&client, FLUNDERS, &flunder(name)).await;
    }
    // A large object, with characters that must be escaped.
    let mut large = flunder("large");
    large["metadata"]["annotations"] = json!({"note": "\u{e4}\n".repeat(50_000)});
    created(&client, FLUNDERS, &large).await;
    let http1 = cluster.client_of_http1();
    let path = format!("{FLUNDERS}?watch=1");
    let (code, headers, socket) = http1.websocket(&path, &[]).await;
    assert_eq!(code, 101);
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(header("upgrade"), Some("websocket"));
    assert_eq!(
        header("sec-websocket-accept"),
        Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    );
    assert_eq!(header("sec-websocket-protocol"), None);
    assert!(is_uid(header("audit-id").unwrap()));
    let mut socket = socket.unwrap();
    for name in ["a", "b", "large"] {
        assert_eq!(
            websocket_event(&mut socket).await,
            ("ADDED".to_owned(), name.to_owned())
        );
    }
    // Later events, and events that come together.
    for name in ["c", "d", "e"] {
        created(&client, FLUNDERS, &flunder(name)).await;
    }
    for name in ["c", "d", "e"] {
        assert_eq!(
            websocket_event(&mut socket).await,
            ("ADDED".to_owned(), name.to_owned())
        );
    }
    // Messages of the client are ignored, its pings are answered, and its close frame too.
    socket.send(Message::text("ignored")).await.unwrap();
    socket.send(Message::Ping("ping".into())).await.unwrap();
    assert_eq!(
        websocket_message(&mut socket).await,
        Some(Message::Pong("ping".into()))
    );
    socket.close(None).await.unwrap();
    assert!(matches!(
        websocket_message(&mut socket).await,
        Some(Message::Close(_))
    ));

    // The end of a watch is a close frame.
    let (_, _, socket) = http1
        .websocket(
            &format!("{path}&timeoutSeconds=1&fieldSelector=metadata.name=a"),
            &[],
        )
        .await;
    let mut socket = socket.unwrap();
    assert_eq!(websocket_event(&mut socket).await.1, "a");
    let Some(Message::Close(Some(frame))) = websocket_message(&mut socket).await else {
        panic!("no close");
    };
    assert_eq!(u16::from(frame.code), 1000);

    // The token as a subprotocol, for clients that cannot send other headers.
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(http1.token());
    let bearer = format!("base64url.bearer.authorization.k8s.io.{token}, v1.json");
    let anonymous = http1.clone().anonymous();
    let (code, headers, _socket) = anonymous
        .websocket(&path, &[("sec-websocket-protocol", &bearer)])
        .await;
    assert_eq!(
        (code, headers["sec-websocket-protocol"].to_str().unwrap()),
        (101, "v1.json")
    );
    let wrong = "base64url.bearer.authorization.k8s.io.d3Jvbmc,v1.json";
    let (code, ..) = anonymous
        .websocket(&path, &[("sec-websocket-protocol", wrong)])
        .await;
    assert_eq!(code, 401);

    // Resources without watch, and invalid handshakes, get ordinary responses.
    let (code, ..) = http1
        .websocket(&format!("{path}&resourceVersion=x"), &[])
        .await;
    assert_eq!(code, 500);
    let (code, headers, _) = http1
        .websocket(&path, &[("sec-websocket-version", "8")])
        .await;
    assert_eq!(
        (code, headers["sec-websocket-version"].to_str().unwrap()),
        (400, "13")
    );
    let (code, ..) = http1.websocket(FLUNDERS, &[]).await;
    assert_eq!(code, 200, "a list is no watch");

    // A server that stops sends a close frame.
    let (_, _, socket) = http1
        .websocket(&format!("{path}&fieldSelector=metadata.name=a"), &[])
        .await;
    let mut socket = socket.unwrap();
    assert_eq!(websocket_event(&mut socket).await.1, "a");
    let stopping = tokio::task::spawn_blocking(move || cluster.stop());
    assert!(matches!(
        websocket_message(&mut socket).await,
        Some(Message::Close(Some(_)))
    ));
    assert_eq!(websocket_message(&mut socket).await, None);
    stopping.await.unwrap();
}

/// The next message, `None` at the end.
async fn websocket_message(socket: &mut WebSocket) -> Option<Message> {
    let message = tokio::time::timeout(Duration::from_secs(30), socket.next()).await;
    message.expect("no message in time").map(Result::unwrap)
}

/// The type of the next event and the name of its object; the message must be text.
async fn websocket_event(socket: &mut WebSocket) -> (String, String) {
    let Some(Message::Text(text)) = websocket_message(socket).await else {
        panic!("no text");
    };
    let event: Value = serde_json::from_str(&text).expect("one event and no more");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (
        text(&event["type"]),
        text(&event["object"]["metadata"]["name"]),
    )
}

async fn c_138_a_server_that_stops_ends_streams_without_an_error(on: Backend) {
    let (mut cluster, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let http1 = cluster.client_of_http1();
    let mut watches = Vec::new();
    for client in [&client, &http1] {
        for query in [
            String::new(),
            format!("&resourceVersion={}", revision(&object)),
            "&fieldSelector=metadata.name%3Da&allowWatchBookmarks=true".to_owned(),
            "&labelSelector=none".to_owned(),
        ] {
            watches.push(client.watch(&format!("{FLUNDERS}?watch=1{query}")).await);
        }
        watches.push(client.watch_as(&format!("{FLUNDERS}?watch=1"), TABLE).await);
    }
    let stopped = tokio::task::spawn_blocking(move || {
        cluster.stop();
        cluster
    });
    for watch in &mut watches {
        let rest = watch.rest().await;
        assert!(
            rest.iter().all(|event| event["type"] != "ERROR"),
            "{rest:?}"
        );
    }
    stopped.await.unwrap();
}

async fn c_139_there_is_no_yaml_watch(on: Backend) {
    let (_cluster, client) = server(on);
    for path in [
        format!("{FLUNDERS}?watch=1"),
        format!("{FISCHERS}?watch=true&resourceVersion=1"),
    ] {
        let answer = client
            .call("GET", &path, &[("accept", "application/yaml")], "")
            .await;
        assert_eq!(answer.code, 406, "{}", answer.text());
        let message = "only the following media types are accepted: application/json;stream=watch";
        assert!(answer.text().contains(message), "{}", answer.text());
    }
}

async fn c_140_an_error_is_a_status_in_every_form(on: Backend) {
    let (_cluster, client) = server(on);
    let future = revision(&created(&client, FLUNDERS, &flunder("a")).await) + 1_000_000;
    let query = format!(
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={future}"
    );
    let path = format!("{FLUNDERS}?watch=1&{query}");
    let watches = [TABLE, PARTIAL].map(|accept| client.watch_as(&path, accept));
    for mut watch in futures_util::future::join_all(watches).await {
        check_future(&watch.next().await.unwrap(), future);
        assert_eq!(watch.next().await, None);
    }
}

async fn a_watch_begins_its_answer_before_there_is_an_event(on: Backend) {
    let (cluster, client) = server(on);
    let http1 = cluster.client_of_http1();
    for client in [client, http1] {
        // If the headers were delayed until the first event, this would not return.
        let watch = client.watch(&format!("{FLUNDERS}?watch=1")).await;
        assert_eq!(watch.header("content-type"), "application/json");
        assert_eq!(watch.header("content-length"), "");
        assert_eq!(watch.header("content-encoding"), "");
        assert!(is_uid(watch.header("audit-id")));
    }
}

async fn a_watch_knows_no_limit_and_no_continue(on: Backend) {
    let (_cluster, client) = server(on);
    let start = revision(&created(&client, FLUNDERS, &flunder("0")).await);
    for name in ["1", "2", "3"] {
        created(&client, FLUNDERS, &flunder(name)).await;
    }
    let after = format!("&resourceVersion={start}&continue=nonsense");
    for (query, expected) in [
        ("", vec!["0", "1", "2", "3"]),
        (&after, vec!["1", "2", "3"]),
    ] {
        let path = format!("{FLUNDERS}?watch=1&limit=1{query}");
        let mut watch = client.watch(&path).await;
        for name in expected {
            let event = watch.event().await;
            assert_eq!(event["object"]["metadata"]["name"], name);
        }
    }
}

async fn every_selective_watcher_sees_its_own(on: Backend) {
    let (_cluster, client) = server(on);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    let start = revision(&created(&client, "/api/v1/namespaces", &namespace).await);
    let all = ALL_FLUNDERS;
    let other = "/apis/wardle.example.com/v1alpha1/namespaces/other/flunders";
    let watched = [
        (
            all,
            "",
            vec!["other/a", "default/a", "default/b", "default/ab"],
        ),
        (FLUNDERS, "", vec!["default/a", "default/b", "default/ab"]),
        (other, "", vec!["other/a"]),
        (FLUNDERS, "metadata.name=a", vec!["default/a"]),
        (all, "metadata.name=a", vec!["other/a", "default/a"]),
        (
            all,
            "metadata.name=a,metadata.namespace=other",
            vec!["other/a"],
        ),
        (
            all,
            "metadata.namespace!=other",
            vec!["default/a", "default/b", "default/ab"],
        ),
        (all, "spec.referenceType=Fischer", vec!["default/b"]),
        (
            FLUNDERS_BETA,
            "spec.referenceType=Fischer",
            vec!["default/b"],
        ),
        (
            FLUNDERS,
            "spec.referenceType!=Fischer,metadata.name!=a",
            vec!["default/ab"],
        ),
    ];
    let mut watches = Vec::new();
    for (path, fields, _) in &watched {
        let query = format!(
            "watch=1&resourceVersion={start}&fieldSelector={}",
            encoded(fields)
        );
        watches.push(client.watch(&format!("{path}?{query}")).await);
    }
    let mut fischer = flunder("b");
    fischer["spec"] = json!({"reference": "f", "referenceType": "Fischer"});
    created(&client, other, &flunder("a")).await;
    for object in [flunder("a"), fischer, flunder("ab")] {
        created(&client, FLUNDERS, &object).await;
    }
    for ((path, fields, expected), mut watch) in watched.into_iter().zip(watches) {
        for expected in expected {
            let event = watch.event().await;
            let text = |field: &str| {
                event["object"]["metadata"][field]
                    .as_str()
                    .unwrap()
                    .to_owned()
            };
            let got = format!("{}/{}", text("namespace"), text("name"));
            assert_eq!(
                (&event["type"], got.as_str()),
                (&json!("ADDED"), expected),
                "{path} {fields}"
            );
        }
    }
}
