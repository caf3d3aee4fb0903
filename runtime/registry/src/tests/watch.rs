//! watch.

use std::time::Duration;

use super::*;

fn from(version: impl ToString) -> ListOptions {
    ListOptions {
        resource_version: version.to_string(),
        send_initial_events: Some(false),
        ..ListOptions::default()
    }
}

/// The next event as type, name and resourceVersion.
async fn next(events: &mut WatchEvents) -> (WatchEventKind, String, String) {
    let event = events.next().await.unwrap().unwrap();
    seen(event.kind, &decoded(&event.object))
}

fn seen(kind: WatchEventKind, object: &Object) -> (WatchEventKind, String, String) {
    (
        kind,
        object.name().to_owned(),
        object.resource_version().to_owned(),
    )
}

use WatchEventKind::{Added, Bookmark, Deleted as Gone, Modified};

#[tokio::test]
async fn every_change_after_a_revision_is_delivered_in_order() {
    let f = fixture().await;
    let before = f.create(widget("a", json!({}))).await.unwrap();
    let b = f.create(widget("b", json!({}))).await.unwrap();
    let mut events = f
        .widgets
        .reads()
        .watch(&f.ctx, NS, &from(before.resource_version()))
        .await
        .unwrap();
    let a = f
        .merge("a", json!({"spec": {"color": "red"}}))
        .await
        .unwrap();
    f.delete("b").await.unwrap();
    assert_eq!(next(&mut events).await, seen(Added, &b));
    assert_eq!(next(&mut events).await, seen(Modified, &a));
    let gone = events.next().await.unwrap().unwrap();
    let last = decoded(&gone.object);
    assert_eq!((gone.kind, last.name()), (Gone, "b"));
    assert_eq!(last.resource_version(), f.revision().await.to_string());
    assert_eq!(last.uid(), b.uid());
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let f = fixture().await;
    let b = f.create(widget("b", json!({}))).await.unwrap();
    let a = f.create(widget("a", json!({}))).await.unwrap();
    let options = ListOptions {
        send_initial_events: Some(true),
        allow_watch_bookmarks: true,
        ..ListOptions::default()
    };
    let mut events = f.widgets.reads().watch(&f.ctx, NS, &options).await.unwrap();
    assert_eq!(next(&mut events).await, seen(Added, &a));
    assert_eq!(next(&mut events).await, seen(Added, &b));
    let end = events.next().await.unwrap().unwrap();
    assert_eq!(end.kind, Bookmark);
    let expected = json!({"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {
        "resourceVersion": f.revision().await.to_string(), "annotations": {"k8s.io/initial-events-end": "true"}}});
    assert_eq!(decoded(&end.object).into_value(), expected);
    let c = f.create(widget("c", json!({}))).await.unwrap();
    assert_eq!(next(&mut events).await, seen(Added, &c));
}

#[tokio::test]
async fn a_watch_from_nowhere_begins_with_the_present_objects_and_no_bookmark() {
    let f = fixture().await;
    let a = f.create(widget("a", json!({}))).await.unwrap();
    let mut events = f
        .widgets
        .reads()
        .watch(&f.ctx, NS, &ListOptions::default())
        .await
        .unwrap();
    assert_eq!(next(&mut events).await, seen(Added, &a));
    let a = f.merge("a", json!({"spec": {"size": 2}})).await.unwrap();
    assert_eq!(next(&mut events).await, seen(Modified, &a));
}

#[tokio::test]
async fn selectors_turn_changes_into_arrivals_and_departures() {
    let f = fixture().await;
    f.create(widget("a", json!({"color": "blue"})))
        .await
        .unwrap();
    let options = ListOptions {
        ..fields("spec.color=red")
    };
    let options = ListOptions {
        send_initial_events: Some(false),
        ..options
    };
    let mut events = f.widgets.reads().watch(&f.ctx, NS, &options).await.unwrap();
    let red = f
        .merge("a", json!({"spec": {"color": "red"}}))
        .await
        .unwrap();
    let bigger = f.merge("a", json!({"spec": {"size": 2}})).await.unwrap();
    let green = f
        .merge("a", json!({"spec": {"color": "green"}}))
        .await
        .unwrap();
    f.merge("a", json!({"spec": {"size": 3}})).await.unwrap();
    f.create(widget("z", json!({"color": "red"})))
        .await
        .unwrap();
    assert_eq!(next(&mut events).await, seen(Added, &red));
    assert_eq!(next(&mut events).await, seen(Modified, &bigger));
    let left = events.next().await.unwrap().unwrap();
    let last = decoded(&left.object);
    assert_eq!((left.kind, at(&last, "/spec/color")), (Gone, json!("red")));
    assert_eq!(last.resource_version(), green.resource_version());
    assert_eq!(next(&mut events).await.1, "z");
}

#[tokio::test]
async fn a_watch_by_name_does_not_show_longer_names() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    f.create(widget("ab", json!({}))).await.unwrap();
    let mut events = f
        .widgets
        .reads()
        .watch(&f.ctx, NS, &fields("metadata.name=a"))
        .await
        .unwrap();
    assert_eq!(next(&mut events).await.1, "a");
    f.merge("ab", json!({"spec": {"size": 2}})).await.unwrap();
    f.delete("a").await.unwrap();
    assert_eq!(next(&mut events).await.0, Gone);
}

#[tokio::test]
async fn a_watch_speaks_the_version_of_the_request() {
    let f = fixture().await;
    f.create(widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    let mut events = f
        .alpha
        .reads()
        .watch(&f.ctx, NS, &ListOptions::default())
        .await
        .unwrap();
    let event = events.next().await.unwrap().unwrap();
    let object = decoded(&event.object);
    assert_eq!(
        (object.api_version(), at(&object, "/spec/colour")),
        ("test.example.com/v1alpha1", json!("red"))
    );
}

#[tokio::test]
async fn a_revision_that_is_no_longer_kept_is_an_error_in_the_stream() {
    let f = forgetful().await;
    f.create(widget("a", json!({}))).await.unwrap();
    f.delete("a").await.unwrap();
    let current = f.revision().await;
    f.cached().await;
    f.store
        .compact(apiloom_storage::Revision(current))
        .await
        .unwrap();
    let mut events = f.widgets.reads().watch(&f.ctx, NS, &from(1)).await.unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(
        shown(&error),
        (
            Some("Expired"),
            format!("too old resource version: 1 ({current})").as_str()
        )
    );
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_state_of_the_future_is_an_error_in_the_stream() {
    let f = fixture().await;
    let options = ListOptions {
        send_initial_events: Some(true),
        ..from(FUTURE)
    };
    let mut events = f.widgets.reads().watch(&f.ctx, NS, &options).await.unwrap();
    assert_eq!(
        events.next().await.unwrap().unwrap_err().reason,
        Some(StatusReason::Timeout)
    );
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn what_cannot_begin_is_refused_before_the_stream() {
    let f = fixture().await;
    let refused = async |options: ListOptions| {
        f.widgets
            .reads()
            .watch(&f.ctx, NS, &options)
            .await
            .err()
            .unwrap()
    };
    let error = refused(from("zz")).await;
    let text =
        "resourceVersion: Invalid value: \"zz\": strconv.ParseUint: parsing \"zz\": invalid syntax";
    assert_eq!(shown(&error), (None, text));
    let error = refused(fields("spec.zip=1")).await;
    assert_eq!(
        shown(&error),
        (Some("BadRequest"), "field label not supported: spec.zip")
    );
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_before_the_end() {
    let f = fixture().await;
    let a = f.create(widget("a", json!({}))).await.unwrap();
    let options = ListOptions {
        allow_watch_bookmarks: true,
        timeout_seconds: Some(100),
        ..from(a.resource_version())
    };
    let start = tokio::time::Instant::now();
    let mut events = f.widgets.reads().watch(&f.ctx, NS, &options).await.unwrap();
    for seconds in [60, 98] {
        let bookmark = events.next().await.unwrap().unwrap();
        assert_eq!(bookmark.kind, Bookmark);
        let object = decoded(&bookmark.object);
        assert_eq!(object.resource_version(), a.resource_version());
        assert_eq!(at(&object, "/metadata/annotations"), Value::Null);
        assert_eq!(start.elapsed().as_secs(), seconds);
    }
    assert!(events.next().await.is_none());
    assert_eq!(start.elapsed().as_secs(), 100);
}

#[tokio::test(start_paused = true)]
async fn without_bookmarks_a_stream_is_silent_until_its_end() {
    let f = fixture().await;
    let options = ListOptions {
        timeout_seconds: Some(100),
        ..from("")
    };
    let mut events = f.widgets.reads().watch(&f.ctx, NS, &options).await.unwrap();
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_timeout_ends_after_half_an_hour_to_an_hour() {
    let f = fixture().await;
    let start = tokio::time::Instant::now();
    let mut events = f
        .widgets
        .reads()
        .watch(&f.ctx, NS, &from(""))
        .await
        .unwrap();
    assert!(events.next().await.is_none());
    assert!((Duration::from_secs(1800)..Duration::from_secs(3601)).contains(&start.elapsed()));
}

#[tokio::test]
async fn dry_runs_and_no_ops_are_not_seen() {
    let f = fixture().await;
    let a = f.create(widget("a", json!({}))).await.unwrap();
    let mut events = f
        .widgets
        .reads()
        .watch(&f.ctx, NS, &from(a.resource_version()))
        .await
        .unwrap();
    let options = CreateOptions {
        dry_run: true,
        ..CreateOptions::default()
    };
    f.widgets
        .writes()
        .create(&f.ctx, NS, object(widget("dry", json!({}))), &options)
        .await
        .unwrap();
    f.merge("a", json!({})).await.unwrap();
    let b = f.create(widget("b", json!({}))).await.unwrap();
    assert_eq!(next(&mut events).await, seen(Added, &b));
}

/// The address of the next event's bytes, to check whether watchers share them.
async fn bytes_of_next(events: &mut WatchEvents) -> (usize, String) {
    let event = events.next().await.unwrap().unwrap();
    let Document::Encoded(encoded) = &event.object else {
        panic!("{:?} is encoded for this watcher alone", event.object)
    };
    let bytes = encoded.shared();
    (
        bytes.as_ptr() as usize,
        String::from_utf8(bytes.to_vec()).unwrap(),
    )
}

#[tokio::test]
async fn c_150_a_change_is_encoded_once_for_all_watchers_of_a_version() {
    let f = fixture().await;
    let start = f.create(widget("first", json!({}))).await.unwrap();
    let options = from(start.resource_version());
    for endpoint in [&f.widgets, &f.alpha] {
        let mut watches = Vec::new();
        for labels in ["", "", "!none"] {
            let options = ListOptions {
                label_selector: LabelQuery::parse(labels).unwrap(),
                ..options.clone()
            };
            watches.push(endpoint.reads().watch(&f.ctx, NS, &options).await.unwrap());
        }
        f.merge("first", json!({"spec": {"size": 7}}))
            .await
            .unwrap();
        let first = bytes_of_next(&mut watches[0]).await;
        for watch in &mut watches[1..] {
            assert_eq!(bytes_of_next(watch).await, first);
        }
    }
}
