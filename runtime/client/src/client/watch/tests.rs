//! Watches with scripted answers.

use std::time::Duration;

use futures_util::StreamExt as _;

use super::super::tests::{Pot, pots};
use super::{Bookmark, WatchEvent, WatchStream};
use crate::error::Error;
use crate::scripted::{End, Script};

async fn watch(script: Script) -> WatchStream<Pot> {
    let request = pots(script).watch().from("1").bookmarks();
    request.timeout(Duration::from_secs(60)).await.unwrap()
}

/// The events as short texts, then the error or `end`.
async fn events(script: Script) -> Vec<String> {
    let mut stream = watch(script).await;
    let mut found = Vec::new();
    while let Some(event) = stream.next().await {
        found.push(match event {
            Ok(WatchEvent::Added(pot)) => format!("+{}@{}", pot.name, pot.version),
            Ok(WatchEvent::Modified(pot)) => format!("~{}@{}", pot.name, pot.version),
            Ok(WatchEvent::Deleted(pot)) => format!("-{}@{}", pot.name, pot.version),
            Ok(WatchEvent::Bookmark(mark)) => format!("at {}", mark.resource_version),
            Ok(WatchEvent::Undecodable(other)) => {
                let key = format!("{}/{}", other.namespace, other.name);
                format!("?{key}@{} {}", other.resource_version, other.error.reason)
            }
            Err(error) => format!("error: {error}"),
        });
    }
    assert!(stream.next().await.is_none(), "an ended stream stays ended");
    found
}

fn pot(event: &str, name: &str, version: &str) -> String {
    format!(
        "{{\"type\":\"{event}\",\"object\":{}}}\n",
        super::super::tests::pot_json(name, version)
    )
}

#[tokio::test]
async fn events_are_decoded_in_order() {
    let text = [
        pot("ADDED", "a", "2"),
        pot("MODIFIED", "a", "3"),
        pot("DELETED", "a", "4"),
    ]
    .concat();
    let script = Script::new().pieces(&[&text], End::Clean);
    assert_eq!(events(script.clone()).await, ["+a@2", "~a@3", "-a@4"]);
    let sent = &script.sent()[0];
    assert_eq!(
        sent.uri,
        "/apis/kitchen.example.com/v1/namespaces/ns/pots?resourceVersion=1&timeoutSeconds=60&watch=1&allowWatchBookmarks=true"
    );
    assert_eq!(sent.headers["accept-encoding"], "identity");
}

#[tokio::test]
async fn trap_16_lines_over_pieces_and_a_half_line_at_the_end() {
    let (first, second) = (pot("ADDED", "a", "2"), pot("ADDED", "b", "3"));
    let (begin, rest) = first.split_at(20);
    let script = Script::new().pieces(&[begin, rest, &second[..second.len() - 5]], End::Clean);
    assert_eq!(events(script).await, ["+a@2"]);
    let carriage = first.replace('\n', "\r\n");
    let script = Script::new().pieces(&[&carriage, &second[..9]], End::Broken);
    assert_eq!(
        events(script).await,
        ["+a@2", "error: no answer from the server: connection reset"]
    );
}

#[tokio::test]
async fn trap_16_long_lines_are_decoded_up_to_the_limit() {
    let long = "x".repeat(5 << 20);
    let event =
        pot("ADDED", "a", "2").replace("\"litres\"", &format!("\"note\":\"{long}\",\"litres\""));
    let script = Script::new().pieces(&[&event], End::Clean);
    assert_eq!(events(script).await, ["+a@2"]);
    let script = Script::new().pieces(&[&event], End::Open);
    let client = crate::Client::builder(script).max_watch_line_bytes(1 << 20);
    let pots = client.build().unwrap().namespaced::<Pot>("ns");
    let error = pots
        .watch()
        .await
        .unwrap()
        .next()
        .await
        .unwrap()
        .unwrap_err();
    assert!(
        error.to_string().contains("max_watch_line_bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn trap_05_06_bookmarks_need_not_be_valid_objects() {
    let text = concat!(
        r#"{"type":"BOOKMARK","object":{"kind":"Pot","metadata":{"resourceVersion":"7"}}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"metadata":{"name":"","resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"litres":null}}}"#,
        "\n"
    );
    let mut stream = watch(Script::new().pieces(&[text], End::Clean)).await;
    let bookmark = |version: &str, ends_initial_events| {
        WatchEvent::<Pot>::Bookmark(Bookmark {
            resource_version: version.to_owned(),
            ends_initial_events,
        })
    };
    assert_eq!(stream.next().await.unwrap().unwrap(), bookmark("7", false));
    assert_eq!(stream.next().await.unwrap().unwrap(), bookmark("9", true));
}

#[tokio::test]
async fn trap_17_an_undecodable_object_is_an_event_with_its_key() {
    let bad = r#"{"type":"MODIFIED","object":{"metadata":{"namespace":"ns","name":"b","resourceVersion":"3"},"spec":{"litres":"many"}}}"#;
    let nameless = r#"{"type":"ADDED","object":{"metadata":{"name":5},"spec":7}}"#;
    let text = [
        pot("ADDED", "a", "2"),
        format!("{bad}\n{nameless}\n"),
        pot("ADDED", "c", "4"),
    ]
    .concat();
    let found = events(Script::new().pieces(&[&text], End::Clean)).await;
    assert_eq!((&*found[0], &*found[3]), ("+a@2", "+c@4"));
    assert!(
        found[1].starts_with("?ns/b@3 invalid type: string \"…\", expected"),
        "{found:?}"
    );
    assert!(found[2].starts_with("?/@ "), "{found:?}");
}

#[tokio::test]
async fn events_of_unknown_types_are_skipped() {
    let text = [
        pot("RENAMED", "b", "1"),
        pot("ADDED", "a", "2"),
        pot("MOVED", "a", "3"),
        "{\"object\":{},\"type\":\"paused now\"}\n".to_owned(),
        pot("MODIFIED", "a", "4"),
    ]
    .concat();
    let found = events(Script::new().pieces(&[&text], End::Clean)).await;
    assert_eq!(found, ["+a@2", "~a@4"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_timeout_ends_too() {
    for _ in 0..20 {
        let began = tokio::time::Instant::now();
        let script = Script::new().pieces(&[], End::Open);
        let mut stream = pots(script.clone()).watch().await.unwrap();
        let uri = script.sent()[0].uri.clone();
        let (_, asked) = uri.split_once("timeoutSeconds=").unwrap();
        let (asked, _) = asked.split_once('&').unwrap();
        let asked: u64 = asked.parse().unwrap();
        assert!((1800..=3600).contains(&asked), "{uri}");
        let error = stream.next().await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Timeout(_)));
        let over = began.elapsed().as_secs() - asked;
        assert!((29..=31).contains(&over), "{over}");
    }
}

#[tokio::test]
async fn other_orders_and_spaces_are_decoded() {
    let object = super::super::tests::pot_json("a", "2");
    let text = format!(
        "{{\"object\":{object},\"type\":\"ADDED\"}}\n{{ \"type\" : \"DELETED\", \"object\" : {object} }}\n"
    );
    let found = events(Script::new().pieces(&[&text], End::Clean)).await;
    assert_eq!(found, ["+a@2", "-a@2"]);
}

#[tokio::test]
async fn an_error_event_ends_the_stream() {
    let gone = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 5 (1023)","reason":"Expired","code":410}}"#;
    let text = format!("{gone}\n{}", pot("ADDED", "a", "2"));
    let mut stream = watch(Script::new().pieces(&[&text], End::Clean)).await;
    assert!(stream.next().await.unwrap().unwrap_err().is_expired());
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn trap_18_a_refused_watch_has_the_code_of_http() {
    let html = "<html><h1>502 Bad Gateway</h1></html>";
    let script = Script::new().answer(502, html);
    let error = pots(script).watch().await.unwrap_err();
    assert_eq!(error.code(), Some(502));
    assert!(error.to_string().contains("Bad Gateway"), "{error}");
    let status = "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"status\": \"Failure\",\n  \"reason\": \"Expired\",\n  \"code\": 410\n}";
    let error = pots(Script::new().answer(410, status)).watch().await;
    assert!(error.unwrap_err().is_expired());
}

#[tokio::test(start_paused = true)]
async fn trap_18_a_body_that_is_no_watch_is_an_error() {
    let status = "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"status\": \"Failure\",\n  \"reason\": \"Expired\",\n  \"code\": 410\n}";
    for end in [End::Clean, End::Open, End::Broken] {
        let (begin, rest) = status.split_at(30);
        let script = Script::new().pieces(&[begin, rest], end);
        let error = watch(script).await.next().await.unwrap().unwrap_err();
        assert!(error.is_expired(), "{end:?}: {error}");
        let script = Script::new().pieces(&["<html>\n<p>Log", " in</p>\n"], end);
        let error = watch(script).await.next().await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Decode(_)));
        assert!(error.to_string().contains("Log in"), "{end:?}: {error}");
    }
    // The same in one line.
    let line = status.replace('\n', "");
    let script = Script::new().pieces(&[&line], End::Clean);
    let error = watch(script).await.next().await.unwrap().unwrap_err();
    assert!(error.is_expired());
    let script = Script::new().pieces(&["<p>Log in</p>"], End::Clean);
    assert!(watch(script).await.next().await.unwrap().is_err());
    // A line that is no event after events.
    let text = format!("{}what\n", pot("ADDED", "a", "2"));
    let found = events(Script::new().pieces(&[&text], End::Open)).await;
    assert!(
        found[1].starts_with("error: cannot decode a Pot"),
        "{found:?}"
    );
}

#[tokio::test]
async fn trap_19_compression_that_was_not_asked_for_is_an_error() {
    let script = Script::new().answer_with(200, &[("content-encoding", "gzip")], "");
    let error = pots(script).watch().await.unwrap_err();
    assert!(error.to_string().contains("gzip"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn trap_20_a_watch_that_outlives_its_timeout_is_dead() {
    let began = tokio::time::Instant::now();
    let script = Script::new().pieces(&[&pot("ADDED", "a", "2")], End::Open);
    let request = pots(script.clone())
        .watch()
        .timeout(Duration::from_secs(300));
    let mut stream = request.await.unwrap();
    assert!(stream.next().await.unwrap().is_ok());
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Timeout(_)));
    assert_eq!(began.elapsed().as_secs(), 330);
    assert!(script.sent()[0].uri.contains("timeoutSeconds=300"));
}

#[tokio::test]
async fn a_watch_is_sent_once() {
    let script = Script::new().answer_with(429, &[("retry-after", "1")], "wait");
    let error = pots(script.clone()).watch().await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(script.lines().len(), 1);
}

#[tokio::test]
async fn blank_lines_are_no_events() {
    let blank = "\n".repeat(1000);
    let event = pot("ADDED", "a", "2");
    let few = Script::new().pieces(&[&blank, &event, &blank], End::Clean);
    assert_eq!(events(few).await, ["+a@2"]);
    let lines: Vec<&str> = std::iter::repeat_n(&*blank, 70).collect();
    let found = events(Script::new().pieces(&lines, End::Open)).await;
    assert!(
        found[0].contains("blank lines instead of events"),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_always_ready_ends_at_the_deadline() {
    let empty = Script::new().endless("");
    let found = events(empty).await;
    assert!(found[0].starts_with("error: "), "{found:?}");
}

/// Servers end a watch when its time is over; client-go relies on that alone.
#[tokio::test(start_paused = true)]
async fn events_without_an_end_end_at_the_deadline() {
    const BOOKMARK: &str =
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}\n";
    const UNKNOWN: &str = "{\"type\":\"RENAMED\",\"object\":{}}\n";
    const UNDECODABLE: &str =
        "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n";
    const BROKEN_LINE: &str = "{\"type\":\"ADDED\",\"object\":\"a\n";
    for (name, piece, count) in [
        ("bookmarks", BOOKMARK, 90_000),
        ("unknown types", UNKNOWN, 0),
        ("undecodable objects", UNDECODABLE, 90_000),
        ("one that is broken", BROKEN_LINE, 0),
    ] {
        let began = tokio::time::Instant::now();
        let mut stream = watch(Script::new().endless(piece)).await;
        let mut events = 0;
        let error = loop {
            match stream.next().await.unwrap() {
                Ok(_) => events += 1,
                Err(error) => break error,
            }
        };
        assert!(stream.next().await.is_none());
        if name == "one that is broken" {
            assert!(matches!(error, Error::Decode(_)), "{name}: {error}");
            continue;
        }
        assert!(matches!(error, Error::Timeout(_)), "{name}: {error}");
        assert_eq!(began.elapsed().as_secs(), 90, "{name}");
        assert!(
            (count - count.min(1_000)..=count + 1_000).contains(&events),
            "{name}: {events}"
        );
    }
}

#[tokio::test]
async fn initial_events_are_bounded_in_sum_as_lists_are() {
    let end = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    let end = format!("{end}\n");
    let events: Vec<String> = (0..20).map(|n| pot("ADDED", "a", &n.to_string())).collect();
    let pieces: Vec<&str> = events.iter().map(String::as_str).collect();
    let bytes = events.iter().map(String::len).sum::<usize>() + end.len();
    let watch = |pieces: &[&str], room: usize| {
        let client = crate::Client::builder(Script::new().pieces(pieces, End::Clean));
        let client = client.max_list_bytes(room).build().unwrap();
        client.namespaced::<Pot>("ns").watch().initial_events()
    };
    // What comes behind their end is no part of them.
    let whole = [&pieces[..], &[&end], &pieces].concat();
    let mut stream = watch(&whole, bytes).await.unwrap();
    for number in 0..41 {
        assert!(stream.next().await.unwrap().is_ok(), "{number}");
    }
    assert!(stream.next().await.is_none());
    for pieces in [&whole[..], &pieces] {
        let mut stream = watch(pieces, bytes - end.len() - 1).await.unwrap();
        let error = loop {
            if let Err(error) = stream.next().await.unwrap() {
                break error.to_string();
            }
        };
        assert!(error.contains("max_list_bytes"), "{error}");
        assert!(stream.next().await.is_none());
    }
}
