//! Tests of events with paused time and a sink in memory.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use apiloom_kinds::core::v1::ConfigMap;
use apiloom_kinds::events::v1 as api;
use apiloom_meta::{MicroTime, ObjectMeta, names};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{Request, Response};
use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep};

use super::correlator::{BURST, Correlator, FINISH, MAX_ENTRIES, REFILL, REFRESH, Write};
use super::queue::MAX_QUEUED;
use super::{
    ClientEvents, Event, EventError, EventSeries, EventSink, EventType, NewEvent, ObjectReference,
    Recorder, RecorderMetrics,
};
use crate::client::Client;
use crate::scripted::Script;
use crate::transport::{Body, Transport, TransportError};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// An event about an object, which differs by its reason.
fn event(object: &str, reason: &str, note: &str) -> NewEvent {
    NewEvent {
        regarding: ObjectReference {
            kind: "ConfigMap".to_owned(),
            namespace: "default".to_owned(),
            name: object.to_owned(),
            ..ObjectReference::default()
        },
        reason: reason.to_owned(),
        note: note.to_owned(),
        ..NewEvent::default()
    }
}

/// What a correlator writes, as a text.
fn shown(write: Option<Write>) -> String {
    match write {
        None => "-".to_owned(),
        Some(Write::Create(event)) => format!("create {}", event.note),
        Some(Write::Series(event, series)) => format!("series {} {}", event.note, series.count),
    }
}

fn correlator() -> Correlator {
    Correlator::new("example.com/test".to_owned(), "pod-1".to_owned())
}

#[test]
fn repeated_events_are_counted_in_one() {
    let (mut correlator, mut now) = (correlator(), Instant::now());
    let time = MicroTime::from_unix_micros;
    let mut written = Vec::new();
    for number in 1..=5 {
        let note = format!("note {number}");
        let write = correlator.observe(event("a", "Failed", &note), now, time(number));
        written.push(shown(write));
        now += MINUTE;
    }
    // The second is written with its count; the notes of the others are not kept.
    assert_eq!(written, ["create note 1", "series note 1 2", "-", "-", "-"]);
    let other = correlator.observe(event("a", "Other", "x"), now, time(6));
    assert_eq!(shown(other), "create x");
    // Six minutes after the last one, the series is written and ends.
    now += FINISH - MINUTE - SECOND;
    assert_eq!(correlator.maintain(now), []);
    now += SECOND;
    let [Write::Series(event, series)] = &correlator.maintain(now)[..] else {
        panic!("one series");
    };
    assert_eq!(event.note, "note 1");
    let last_observed_time = time(5);
    assert_eq!(
        *series,
        EventSeries {
            count: 5,
            last_observed_time
        }
    );
    // The next one is a new event, also of the other, which never repeated.
    now += FINISH;
    assert_eq!(correlator.maintain(now), []);
    for reason in ["Failed", "Other"] {
        let write = correlator.observe(self::event("a", reason, "new"), now, time(7));
        assert_eq!(shown(write), "create new");
    }
}

#[test]
fn a_series_that_goes_on_is_refreshed() {
    let (mut correlator, start) = (correlator(), Instant::now());
    let mut written = Vec::new();
    for minute in 0..65_u32 {
        let now = start + MINUTE * minute;
        let write = correlator.observe(event("a", "Failed", "x"), now, MicroTime::now());
        written.extend(write.map(|write| (minute, shown(Some(write)))));
        let due = correlator.maintain(now);
        written.extend(due.into_iter().map(|write| (minute, shown(Some(write)))));
    }
    assert_eq!(REFRESH, MINUTE * 30);
    let expected = [
        (0, "create x"),
        (1, "series x 2"),
        (31, "series x 32"),
        (61, "series x 62"),
    ];
    assert_eq!(
        written,
        expected.map(|(minute, text)| (minute, text.to_owned()))
    );
}

#[test]
fn the_events_of_an_object_are_limited() {
    let (mut correlator, mut now) = (correlator(), Instant::now());
    let mut written = |object: &str, number: u32, now| {
        let event = event(object, &format!("Reason{number}"), "x");
        correlator.observe(event, now, MicroTime::now()).is_some()
    };
    let first = (0..BURST + 10).filter(|number| written("a", *number, now));
    assert_eq!(first.count(), 25);
    assert!(written("b", 0, now), "another object has its own limit");
    // What repeats needs no right to write.
    assert!(written("a", 0, now));
    now += REFILL;
    let next = (100..110).filter(|number| written("a", *number, now));
    assert_eq!(next.count(), 1);
    now += REFILL * 1000;
    let next = (200..300).filter(|number| written("a", *number, now));
    assert_eq!(next.count(), 25);
    assert_eq!(correlator.limited, 10 + 9 + 75);
}

#[test]
fn what_is_remembered_is_bounded() {
    let (mut correlator, now) = (correlator(), Instant::now());
    for number in 0..MAX_ENTRIES * 3 {
        let object = format!("object-{number}");
        // All at the same time, and each later than the one before.
        let at = now + SECOND * u32::from(number > MAX_ENTRIES) * (number as u32 / 100);
        correlator.observe(event(&object, "Failed", "x"), at, MicroTime::now());
        let (series, limits) = correlator.len();
        assert!(series <= MAX_ENTRIES && limits <= MAX_ENTRIES);
    }
    correlator.maintain(now + REFILL * 1000);
    assert!(correlator.is_empty());
}

#[test]
fn a_written_event_has_all_that_a_server_requires() {
    let new = NewEvent {
        event_type: EventType::Warning,
        regarding: ObjectReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: "Ä:node/1".to_owned(),
            ..ObjectReference::default()
        },
        reason: "R".repeat(200),
        note: "ä".repeat(1000),
        ..NewEvent::default()
    };
    let time = MicroTime::from_unix_micros(0x1234);
    let event = new.into_event("example.com/test", "pod-1", time, 7);
    let mut json = serde_json::to_value(&event).unwrap();
    // As the kind of the server reads it, with its default.
    json["deprecatedSource"] = serde_json::json!({});
    let read: api::Event = serde_json::from_value(json).unwrap();
    assert_eq!(read.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(read.metadata.name.as_deref(), Some("node-1.1234.7"));
    assert_eq!(read.event_time, Some(time));
    assert_eq!(
        read.reporting_controller.as_deref(),
        Some("example.com/test")
    );
    assert_eq!(read.reporting_instance.as_deref(), Some("pod-1"));
    assert_eq!(read.event_type.as_deref(), Some("Warning"));
    assert_eq!(read.regarding.kind.as_deref(), Some("Node"));
    assert_eq!(read.series, None);
    let length = |text: Option<String>| text.unwrap().len();
    assert_eq!(length(read.reason), 128);
    assert_eq!(length(read.action), 128);
    assert_eq!(length(read.note), 1024);
}

#[test]
fn the_name_of_an_event_is_valid_and_like_that_of_its_object() {
    let long = "a.".repeat(200);
    let cases = [
        ("a-1.b", "a-1.b"),
        ("", "event"),
        ("...", "event"),
        ("--x--", "x"),
        ("a.Bc", "a.bc"),
        ("foo:.bar", "foo.bar"),
        ("a..b", "a.b"),
        ("Ä.b-", "b"),
        ("a.-.-b", "a.b"),
        (&long, &long[..199]),
    ];
    for (object, expected) in cases {
        let time = MicroTime::from_unix_micros(0x1234);
        let event = self::event(object, "R", "").into_event("c", "i", time, 1);
        let name = event.metadata.name.unwrap();
        assert_eq!(name, format!("{expected}.1234.1"));
        assert_eq!(names::dns_subdomain(&name), [""; 0]);
    }
}

/// What was written, and how the next writes end.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Sunk>>);

#[derive(Default)]
struct Sunk {
    written: Vec<String>,
    errors: Vec<EventError>,
    is_stuck: bool,
}

impl Sink {
    async fn write(&self, text: String) -> Result<(), EventError> {
        if self.0.lock().unwrap().is_stuck {
            std::future::pending::<()>().await;
        }
        let mut sunk = self.0.lock().unwrap();
        match sunk.errors.pop() {
            Some(error) => Err(error),
            None => {
                sunk.written.push(text);
                Ok(())
            }
        }
    }

    fn written(&self) -> Vec<String> {
        self.0.lock().unwrap().written.clone()
    }

    fn fail(&self, errors: impl IntoIterator<Item = EventError>) {
        self.0.lock().unwrap().errors.extend(errors);
    }
}

impl EventSink for Sink {
    fn create<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<(), EventError>> {
        let count = event.series.map_or(1, |series| series.count);
        self.write(format!("create {} {count}", event.note)).boxed()
    }
    fn set_series<'a>(
        &'a self,
        event: &'a Event,
        series: EventSeries,
    ) -> BoxFuture<'a, Result<(), EventError>> {
        self.write(format!("series {} {}", event.note, series.count))
            .boxed()
    }
}

fn recorder(sink: &Sink) -> Recorder {
    Recorder::new(sink.clone(), "example.com/test", "pod-1")
}

fn temporary() -> EventError {
    EventError::Temporary("connection refused".into())
}

#[tokio::test(start_paused = true)]
async fn events_are_written_in_the_background() {
    let sink = Sink::default();
    let recorder = recorder(&sink);
    let object = ConfigMap {
        metadata: ObjectMeta {
            name: Some("a".to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    for _ in 0..3 {
        recorder.normal(&object, "Synced", "all is well");
    }
    recorder.warning(&object, "Failed", "it is not");
    sleep(SECOND).await;
    let mut expected = vec![
        "create all is well 1",
        "series all is well 2",
        "create it is not 1",
    ];
    assert_eq!(sink.written(), expected);
    // The series ends by the time, without another event.
    sleep(FINISH + MINUTE * 2).await;
    expected.push("series all is well 3");
    assert_eq!(sink.written(), expected);
    let metrics = RecorderMetrics {
        written: 4,
        ..RecorderMetrics::default()
    };
    assert_eq!(recorder.metrics(), metrics);
}

#[tokio::test(start_paused = true)]
async fn of_too_many_events_the_newest_are_written() {
    let sink = Sink::default();
    let recorder = recorder(&sink);
    sink.0.lock().unwrap().is_stuck = true;
    recorder.record(event("first", "R", "first"));
    sleep(SECOND).await;
    let start = Instant::now();
    for number in 0..MAX_QUEUED + 50 {
        recorder.record(event(&format!("object-{number}"), "R", &number.to_string()));
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(recorder.metrics().dropped, 50);
    // The server is gone for good: the last writes are given up.
    recorder.shutdown().await;
    assert!(start.elapsed() <= 6 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn temporary_failures_are_repeated_and_refusals_are_not() {
    let sink = Sink::default();
    let recorder = recorder(&sink);
    sink.fail([temporary(), temporary()]);
    recorder.record(event("a", "R", "a"));
    sleep(15 * SECOND).await;
    assert_eq!(sink.written(), [""; 0]);
    sleep(10 * SECOND).await;
    assert_eq!(sink.written(), ["create a 1"]);
    sink.fail([EventError::Refused("the namespace is terminating".into())]);
    recorder.record(event("b", "R", "b"));
    recorder.record(event("c", "R", "c"));
    sleep(SECOND).await;
    assert_eq!(sink.written(), ["create a 1", "create c 1"]);
    assert_eq!(recorder.metrics().failed, 1);
    sink.fail((0..12).map(|_| temporary()));
    recorder.record(event("d", "R", "d"));
    sleep(3 * MINUTE).await;
    recorder.record(event("e", "R", "e"));
    sleep(SECOND).await;
    assert_eq!(recorder.metrics().failed, 2);
    assert_eq!(sink.written().last().unwrap(), "create e 1");
}

#[tokio::test]
async fn an_event_that_cannot_be_created_has_the_message_of_the_server() {
    let missing = r#"{"kind": "Status", "apiVersion": "v1", "code": 404, "reason": "NotFound", "message": "namespaces \"default\" not found"}"#;
    let script = Script::new().answer(404, missing).answer(404, missing);
    let sink = ClientEvents::new(&Client::new(script));
    let time = MicroTime::from_unix_micros(1);
    let event = event("a", "R", "x").into_event("c", "i", time, 1);
    let error = sink.create(&event).await.unwrap_err();
    assert!(matches!(error, EventError::Refused(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("namespaces \"default\" not found"),
        "{error}"
    );
    let series = EventSeries {
        count: 2,
        last_observed_time: time,
    };
    let error = sink.set_series(&event, series).await.unwrap_err();
    assert!(matches!(error, EventError::NotFound), "{error}");
}

/// A server that refuses the events of busy objects for now, and records the names of the objects.
struct Busy(Arc<Mutex<Vec<String>>>);

impl Transport for Busy {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let requests = Arc::clone(&self.0);
        async move {
            let body = request.into_body().collect(1 << 20).await.expect("a body");
            let event: Value = serde_json::from_slice(&body).expect("an event");
            let name = event["regarding"]["name"].as_str().expect("a name");
            let is_busy = name.starts_with("busy");
            requests.lock().unwrap().push(name.to_owned());
            let response = Response::builder().header("content-type", "application/json");
            let response = if is_busy {
                response.status(429).header("retry-after", "1")
            } else {
                response.status(201)
            };
            let body = if is_busy {
                json!({"kind": "Status", "apiVersion": "v1", "code": 429, "reason": "TooManyRequests"})
            } else {
                event
            };
            Ok(response
                .body(Body::from(Bytes::from(body.to_string())))
                .unwrap())
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_other_objects_are_written_while_one_waits() {
    let requests = Arc::default();
    let client = Client::new(Busy(Arc::clone(&requests)));
    let recorder = Recorder::new(ClientEvents::new(&client), "example.com/test", "pod-1");
    recorder.record(event("busy", "R", "x"));
    sleep(SECOND).await;
    recorder.record(event("a", "R", "x"));
    sleep(SECOND).await;
    assert_eq!(*requests.lock().unwrap(), ["busy", "a"]);
    assert_eq!(recorder.metrics().written, 1);
    // Each is repeated on its own, and given up after two minutes.
    sleep(3 * MINUTE).await;
    assert_eq!(requests.lock().unwrap().len(), 1 + 12);
    assert_eq!(recorder.metrics().failed, 1);
    // Of those that wait there are only so many; others stay in the queue, where the newest are kept.
    for number in 0..MAX_QUEUED + 200 {
        recorder.record(event(&format!("busy-{number}"), "R", "x"));
        sleep(SECOND / 1000).await;
    }
    assert_eq!(requests.lock().unwrap().len(), 1 + 12 + 100);
    assert_eq!(recorder.metrics().dropped, 100);
    let start = Instant::now();
    recorder.shutdown().await;
    assert!(start.elapsed() <= 6 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_series_whose_event_expired_goes_on_in_another() {
    let sink = Sink::default();
    let recorder = recorder(&sink);
    recorder.record(event("a", "R", "x"));
    sleep(SECOND).await;
    sink.fail([EventError::NotFound]);
    recorder.record(event("a", "R", "x"));
    sleep(SECOND).await;
    assert_eq!(sink.written(), ["create x 1", "create x 2"]);
}

#[tokio::test(start_paused = true)]
async fn trap_35_the_task_of_a_recorder_ends_with_it_and_writes_what_waits() {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    let sink = Sink::default();
    let recorder = recorder(&sink);
    for note in ["1", "2", "3"] {
        recorder.record(event("a", "R", note));
    }
    recorder.clone().record(event("b", "R", "b"));
    drop(recorder);
    sleep(SECOND).await;
    let expected = ["create 1 1", "series 1 2", "create b 1", "series 1 3"];
    assert_eq!(sink.written(), expected);
    assert_eq!(tasks(), before);

    // Also while it waits to repeat a write.
    let sink = Sink::default();
    let recorder = self::recorder(&sink);
    sink.fail([temporary()]);
    recorder.record(event("a", "R", "a"));
    recorder.record(event("b", "R", "b"));
    advance(SECOND).await;
    let other = recorder.clone();
    recorder.shutdown().await;
    assert_eq!(sink.written(), ["create b 1", "create a 1"]);
    other.record(event("c", "R", "c"));
    sleep(SECOND).await;
    assert_eq!(sink.written().len(), 2);
    assert_eq!(tasks(), before);
}
