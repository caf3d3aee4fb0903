//! Deadlines of the server, and its end.

use std::time::{Duration, Instant};

use crate::*;

on_each_backend![
    c_046_a_server_that_stops_is_not_ready,
    c_167_requests_end_at_the_deadline_and_watches_do_not,
    c_168_requests_in_flight_are_answered_when_the_server_stops,
];

async fn c_046_a_server_that_stops_is_not_ready(on: Backend) {
    let mut server = Cluster::start_alone(on, &["--shutdown-delay-duration=1h"]);
    let client = server.client();
    server.server().terminate();
    let lines = loop {
        let answer = client.get("/readyz").await;
        if answer.code == 500 {
            break answer.text();
        }
    };
    let lines: Vec<&str> = lines.lines().collect();
    assert!(
        lines.contains(&"[-]shutdown failed: reason withheld"),
        "{lines:?}"
    );
    assert_eq!(*lines.last().unwrap(), "readyz check failed");
    let live = client.get("/livez").await;
    assert_eq!((live.code, &*live.text()), (200, "ok"));
    // It serves as before, on new connections too.
    let another = server.client();
    let object = created(&another, FLUNDERS, &flunder("a")).await;
    let mut watch = another.watch(&format!("{FLUNDERS}?watch=1")).await;
    assert_eq!(watch.event().await["object"], object);
    server.kill();
}

async fn c_167_requests_end_at_the_deadline_and_watches_do_not(on: Backend) {
    let server = Cluster::start_alone(on, &["--request-timeout=2s"]);
    let client = server.client();
    let path = format!("{}&timeout=1h", in_the_future(&client).await);
    let mut watch = client
        .watch(&format!("{FLUNDERS}?watch=1&timeoutSeconds=60"))
        .await;
    let started = Instant::now();
    let answer = client.get(&path).await;
    let took = started.elapsed();
    if is_cached() {
        assert_eq!((answer.code, &*answer.text()), (504, OUT_OF_TIME));
        assert!(took >= Duration::from_secs(2), "{took:?}");
    }
    // The watch is older than that request, and still open.
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    assert_eq!(watch.event().await["object"], object);
}

async fn c_168_requests_in_flight_are_answered_when_the_server_stops(on: Backend) {
    let mut server = Cluster::start_alone(on, &["--shutdown-delay-duration=2s"]);
    let client = server.client();
    let path = in_the_future(&client).await;
    let mut watch = client.watch(&format!("{FLUNDERS}?watch=1")).await;
    server.server().terminate();
    let started = Instant::now();
    while client.get("/readyz").await.code == 200 {}
    // This request is in flight when the delay ends: it waits for longer.
    let waiting = tokio::spawn(async move { client.get(&path).await });
    // During the delay new connections are accepted; after it they are not, and the watch has ended without an error.
    let object = created(&server.client(), FLUNDERS, &flunder("a")).await;
    assert_eq!(watch.event().await["object"], object);
    assert_eq!(watch.next().await, None);
    assert!(started.elapsed() >= Duration::from_millis(1_950));
    while server
        .client()
        .try_call("GET", "/livez", &[], "")
        .await
        .is_ok()
    {}
    let answer = waiting.await.unwrap();
    assert_eq!(answer.code, 504, "{}", answer.text());
    let message = answer.json()["message"].to_string();
    assert!(message.contains("Too large resource version"), "{message}");
    tokio::task::spawn_blocking(move || server.wait())
        .await
        .unwrap();
}
