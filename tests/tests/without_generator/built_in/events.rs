//! Event, in the core group and in events.k8s.io.

use std::time::Duration;

use apiloom::server::{self, Backend, Config};
use serde_json::{Value, json};

use super::BuiltIns;
use crate::in_process::{event, open, read, serve_with};

const NEW: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// An event as older clients send it, without an eventTime.
fn old(name: &str) -> Value {
    json!({
        "metadata": {"name": name}, "reason": "Pulled", "message": " pulled it ", "type": "Normal", "count": 3,
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web", "fieldPath": "spec.containers{a}"},
        "source": {"component": "kubelet", "host": "node-1"},
        "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:06Z",
    })
}

/// An event as newer clients send it.
fn new(name: &str) -> Value {
    json!({
        "metadata": {"name": name}, "eventTime": "2026-01-02T03:04:05.000006Z", "type": "Warning",
        "reportingController": "example.com/robot", "reportingInstance": "robot-1", "action": "Start", "reason": "Failed",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "web"}, "note": "it failed",
    })
}

#[tokio::test]
async fn an_event_is_one_object_in_two_groups() {
    let server = BuiltIns::new().await;
    let created = server.object("POST", "events", old("old")).await;
    let mut expected = old("old");
    expected["kind"] = json!("Event");
    expected["apiVersion"] = json!("v1");
    expected["metadata"]["namespace"] = json!("default");
    expected["reportingComponent"] = json!("");
    expected["reportingInstance"] = json!("");
    expected["eventTime"] = Value::Null;
    assert_eq!(created, expected);
    let got = server
        .object("GET", &format!("{NEW}/old"), Value::Null)
        .await;
    let expected = json!({
        "kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": {"name": "old", "namespace": "default"},
        "regarding": old("")["involvedObject"], "note": " pulled it ", "type": "Normal", "reason": "Pulled",
        "deprecatedSource": {"component": "kubelet", "host": "node-1"}, "deprecatedCount": 3,
        "deprecatedFirstTimestamp": "2026-01-02T03:04:05Z", "deprecatedLastTimestamp": "2026-01-02T03:04:06Z",
        "reportingController": "", "reportingInstance": "", "eventTime": null,
    });
    assert_eq!(got, expected);

    let watch = open(
        &server.loopback,
        "GET",
        "/api/v1/events?watch=1&fieldSelector=reason=Failed",
        "",
    )
    .await;
    let mut watch = watch.into_body();
    server.object("POST", NEW, new("new")).await;
    let seen = event(&mut watch).await.unwrap();
    let seen = &seen["object"];
    assert_eq!(
        (&seen["apiVersion"], &seen["message"]),
        (&json!("v1"), &json!("it failed"))
    );
    assert_eq!(seen["reportingComponent"], "example.com/robot");
    for (url, count) in [
        ("events", 2),
        (NEW, 2),
        (
            "events?fieldSelector=involvedObject.name=web,type=Normal",
            1,
        ),
    ] {
        let (_, list) = server.send("GET", url, &Value::Null).await;
        assert_eq!(list["items"].as_array().unwrap().len(), count, "{url}");
    }
    let selected =
        format!("{NEW}?fieldSelector=regarding.name=web,reportingController=example.com/robot");
    let (_, list) = server.send("GET", &selected, &Value::Null).await;
    assert_eq!(list["items"][0]["note"], "it failed");

    let (code, status) = server.send("POST", NEW, &new("old")).await;
    let message = "events.events.k8s.io \"old\" already exists";
    assert_eq!((code, &status["message"]), (409, &json!(message)));
    let (code, _) = server
        .send("DELETE", &format!("{NEW}/old"), &Value::Null)
        .await;
    assert_eq!(code, 200);
    let (code, status) = server.send("GET", "events/old", &Value::Null).await;
    assert_eq!(
        (code, &status["message"]),
        (404, &json!("events \"old\" not found"))
    );
    // The end of a server waits for its responses.
    drop(watch);
    server.stop().await;
}

/// Times that are not set are nulls, as those of kube-apiserver, and clients may send them so.
#[tokio::test]
async fn missing_times_are_nulls() {
    let server = BuiltIns::new().await;
    let times = ["eventTime", "firstTimestamp", "lastTimestamp"];
    let shown = |event: &Value, names: &[&str]| -> Vec<Option<Value>> {
        names.iter().map(|name| event.get(name).cloned()).collect()
    };
    let absent = json!({"metadata": {"name": "absent"}, "series": {"count": 2}});
    let mut sent = absent.clone();
    sent["metadata"]["name"] = json!("sent");
    for time in times {
        sent[time] = Value::Null;
    }
    for event in [absent, sent] {
        let name = event["metadata"]["name"].clone();
        let created = server.object("POST", "events", event).await;
        assert_eq!(shown(&created, &times), vec![Some(Value::Null); 3]);
        let url = format!("{NEW}/{}", name.as_str().unwrap());
        let got = server.object("GET", &url, Value::Null).await;
        let names = [
            "eventTime",
            "deprecatedFirstTimestamp",
            "deprecatedLastTimestamp",
        ];
        assert_eq!(shown(&got, &names), vec![Some(Value::Null); 3]);
        let series = json!({"count": 2, "lastObservedTime": null});
        assert_eq!((&created["series"], &got["series"]), (&series, &series));
    }
    server.stop().await;
}

/// `source` is the component of the source, or the reporting controller if there is none.
#[tokio::test]
async fn events_are_selected_by_their_source() {
    let server = BuiltIns::new().await;
    server.object("POST", "events", old("old")).await;
    server.object("POST", NEW, new("new")).await;
    let mut both = old("both");
    both["reportingComponent"] = json!("example.com/robot");
    both["source"] = json!({"component": "", "host": "node-1"});
    server.object("POST", "events", both).await;
    let nameless = json!({"metadata": {"name": "nameless"}});
    server.object("POST", "events", nameless).await;
    for (selector, expected) in [
        ("source=kubelet", vec!["old"]),
        ("source=example.com/robot", vec!["both", "new"]),
        ("source!=kubelet", vec!["both", "nameless", "new"]),
        ("source=", vec!["nameless"]),
        ("source=kubelet,metadata.name=old,type=Normal", vec!["old"]),
    ] {
        for resource in ["events", NEW] {
            // The second list is read from the store.
            for more in ["", "&limit=100"] {
                let url = format!("{resource}?fieldSelector={selector}{more}");
                let (code, list) = server.send("GET", &url, &Value::Null).await;
                assert_eq!(code, 200, "{list}");
                let names = list["items"].as_array().unwrap().iter();
                let names: Vec<&str> = names
                    .map(|item| item["metadata"]["name"].as_str().unwrap())
                    .collect();
                assert_eq!(names, expected, "{url}");
            }
        }
    }
    let unknown = format!("{NEW}?fieldSelector=source.component=kubelet");
    let (code, status) = server.send("GET", &unknown, &Value::Null).await;
    let message = "field label not supported: source.component";
    assert_eq!((code, &status["message"]), (400, &json!(message)));
    let watch = "/api/v1/events?watch=1&fieldSelector=source=kubelet";
    let mut watch = open(&server.loopback, "GET", watch, "").await.into_body();
    let seen = event(&mut watch).await.unwrap();
    assert_eq!(seen["object"]["metadata"]["name"], "old");
    server.object("POST", NEW, new("newer")).await;
    server.object("POST", "events", old("older")).await;
    let seen = event(&mut watch).await.unwrap();
    assert_eq!(seen["object"]["metadata"]["name"], "older");
    drop(watch);
    server.stop().await;
}

#[tokio::test]
async fn events_have_columns_of_their_own() {
    let server = BuiltIns::new().await;
    server.object("POST", "events", old("old")).await;
    for url in ["/api/v1/namespaces/default/events", NEW] {
        let row = server.row(url).await;
        let cells: Vec<Value> = row.as_array().unwrap().iter().skip(1).cloned().collect();
        assert_eq!(row[0][0], "Last Seen");
        let expected = json!([
            ["Type", "Normal"],
            ["Reason", "Pulled"],
            ["Object", "pod/web"],
            ["Subobject", "spec.containers{a}"],
            ["Source", "kubelet, node-1"],
            ["Message", "pulled it"],
            cells[6],
            ["Count", 3],
            ["Name", "old"],
        ]);
        assert_eq!(Value::from(cells.clone()), expected);
        assert_eq!(cells[6][0], "First Seen");
    }
    let bare = json!({"metadata": {"name": "bare"}, "involvedObject": {"kind": "Pod"}});
    server.object("DELETE", "events/old", Value::Null).await;
    server.object("POST", "events", bare).await;
    let row = server.row("/api/v1/namespaces/default/events").await;
    assert_eq!(
        (&row[0], &row[3]),
        (
            &json!(["Last Seen", "<unknown>"]),
            &json!(["Object", "pod"])
        )
    );
    server.stop().await;
}

#[tokio::test]
async fn events_are_checked() {
    let server = BuiltIns::new().await;
    let check = async |url: &str, event: Value, field: &str, value: Value, expected: &str| {
        let mut event = event;
        event[field] = value;
        assert_eq!(
            server.refusal("POST", url, event).await,
            expected,
            "{field}"
        );
    };
    let other = json!({"namespace": "other"});
    let mismatch =
        "involvedObject.namespace: Invalid value: \"other\": does not match event.namespace";
    check("events", old("a"), "involvedObject", other, mismatch).await;
    check(
        NEW,
        new("a"),
        "eventTime",
        Value::Null,
        "eventTime: Required value",
    )
    .await;
    check(
        NEW,
        new("a"),
        "action",
        Value::Null,
        "action: Required value",
    )
    .await;
    check(
        NEW,
        new("a"),
        "note",
        json!("x".repeat(1025)),
        "message: Invalid value: \"\": can have at most 1024 characters",
    )
    .await;
    check(
        NEW,
        new("a"),
        "type",
        json!("Odd"),
        "type: Invalid value: \"\": has invalid value: Odd",
    )
    .await;
    check(
        NEW,
        new("a"),
        "deprecatedCount",
        json!(1),
        "count: Invalid value: \"\": needs to be unset",
    )
    .await;
    let series = json!({"count": 1});
    check(NEW, new("a"), "series", series, "[series.count: Invalid value: \"\": should be at least 2, series.lastObservedTime: Required value]").await;
    // The core group has none of these rules for events without an eventTime.
    server
        .object("POST", "events", json!({"metadata": {"name": "b"}}))
        .await;
    server.object("POST", NEW, new("c")).await;
    let mut changed = new("c");
    changed["note"] = json!("other");
    let refused = server.refusal("PUT", &format!("{NEW}/c"), changed).await;
    assert_eq!(
        refused,
        "message: Invalid value: \"other\": field is immutable"
    );
    let mut repeated = new("c");
    repeated["series"] = json!({"count": 2, "lastObservedTime": "2026-01-02T03:04:06.000000Z"});
    server.object("PUT", &format!("{NEW}/c"), repeated).await;
    server.stop().await;
}

#[tokio::test]
async fn events_expire() {
    let mut config = Config::new("kitchen", "/proc/none");
    config.backend = Backend::Memory;
    config.event_ttl = Duration::from_secs(1);
    let server = serve_with(server::builder(config).all_built_in()).await;
    let loopback = server.loopback.privileged();
    let watch = open(&loopback, "GET", "/api/v1/events?watch=1", "").await;
    let mut watch = watch.into_body();
    let url = "/api/v1/namespaces/default/events";
    let (code, text) = read(open(&loopback, "POST", url, &old("brief").to_string()).await).await;
    assert_eq!(code, 201, "{text}");
    for change in ["ADDED", "DELETED"] {
        let event = event(&mut watch).await.unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["metadata"]["name"]),
            (&json!(change), &json!("brief"))
        );
    }
    drop(watch);
    server.stop().await;
}
