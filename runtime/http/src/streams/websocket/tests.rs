//! Events over a WebSocket, over a pipe.

use std::sync::Arc;

use http_body::Frame;
use http_body_util::StreamBody;
use tokio::io::DuplexStream;
use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::tungstenite::Error;

use super::*;
use crate::response::CutOff;

/// The client's end, the sender of events, and a signal that the server's end has dropped them.
struct Watch {
    client: WebSocketStream<DuplexStream>,
    events: Option<mpsc::UnboundedSender<Result<Bytes, CutOff>>>,
    forgotten: Arc<Notify>,
}

struct Forget(Arc<Notify>);

impl Drop for Forget {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

async fn watch() -> Watch {
    watch_of(true).await
}

async fn watch_of(has_lines: bool) -> Watch {
    let (ours, theirs) = tokio::io::duplex(1024);
    let (events, receiver) = mpsc::unbounded_channel::<Result<Bytes, CutOff>>();
    let forgotten = Arc::new(Notify::new());
    let state = (receiver, Forget(Arc::clone(&forgotten)));
    let frames = futures_util::stream::unfold(state, |mut state| async {
        let event = state.0.recv().await?;
        Some((event.map(Frame::data), state))
    });
    tokio::spawn(serve(
        ours,
        StreamBody::new(frames).boxed_unsync(),
        has_lines,
    ));
    let client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
    Watch {
        client,
        events: Some(events),
        forgotten,
    }
}

impl Watch {
    fn send(&self, event: &'static str) {
        let events = self.events.as_ref().expect("events go on");
        events.send(Ok(event.into())).expect("the server listens");
    }

    async fn received(&mut self) -> Option<Result<Message, Error>> {
        self.client.next().await
    }
}

fn is_close(message: Option<Result<Message, Error>>, code: CloseCode) -> bool {
    matches!(message, Some(Ok(Message::Close(Some(frame)))) if frame.code == code)
}

#[tokio::test]
async fn each_event_is_a_message_of_text() {
    let mut watch = watch().await;
    for event in ["{\"type\":\"ADDED\"}\n", "{\"type\":\"DELETED\"}\n"] {
        watch.send(event);
    }
    for event in ["{\"type\":\"ADDED\"}\n", "{\"type\":\"DELETED\"}\n"] {
        assert_eq!(
            watch.received().await.unwrap().unwrap(),
            Message::text(event)
        );
    }
}

#[tokio::test]
async fn an_event_with_a_length_is_a_message_of_bytes() {
    let mut watch = watch_of(false).await;
    // The second one comes in two pieces, and has the byte of a line within it.
    for piece in ["\0\0\0\u{2}ab", "\0\0\0\u{3}c\n", "d", "\0\0\0\0"] {
        watch.send(piece);
    }
    for event in [&b"ab"[..], b"c\nd", b""] {
        assert_eq!(
            watch.received().await.unwrap().unwrap(),
            Message::binary(event)
        );
    }
}

#[tokio::test]
async fn the_end_of_events_is_said() {
    let mut watch = watch().await;
    watch.send("last\n");
    watch.events = None;
    assert_eq!(
        watch.received().await.unwrap().unwrap(),
        Message::text("last\n")
    );
    assert!(is_close(watch.received().await, CloseCode::Normal));
    assert!(watch.received().await.is_none());
    watch.forgotten.notified().await;
}

#[tokio::test]
async fn pings_are_answered_and_messages_read_over() {
    let mut watch = watch().await;
    watch.client.send(Message::text("hello")).await.unwrap();
    watch
        .client
        .send(Message::binary(vec![0; 10_000]))
        .await
        .unwrap();
    watch
        .client
        .send(Message::Ping("are you there".into()))
        .await
        .unwrap();
    assert_eq!(
        watch.received().await.unwrap().unwrap(),
        Message::Pong("are you there".into())
    );
    watch.send("eve");
    watch.send("nt\n");
    assert_eq!(
        watch.received().await.unwrap().unwrap(),
        Message::text("event\n")
    );
}

#[tokio::test]
async fn a_client_that_goes_ends_its_watch() {
    let mut closing = watch().await;
    closing.client.close(None).await.unwrap();
    closing.forgotten.notified().await;
    assert!(matches!(
        closing.received().await,
        Some(Ok(Message::Close(_)))
    ));
    assert!(closing.received().await.is_none());
    let gone = watch().await;
    drop(gone.client);
    gone.forgotten.notified().await;
}

#[tokio::test]
async fn a_client_that_says_too_much_is_refused() {
    let mut watch = watch().await;
    let long = Message::binary(vec![0; MAX_RECEIVED_BYTES + 1]);
    // The server may end before all of it is sent.
    let _ = watch.client.send(long).await;
    watch.forgotten.notified().await;
}

#[tokio::test]
async fn events_that_are_cut_off_end_the_watch() {
    let mut watch = watch().await;
    let events = watch.events.take().expect("events go on");
    events.send(Err(CutOff::Unfinished)).unwrap();
    assert!(is_close(watch.received().await, CloseCode::Normal));
    watch.forgotten.notified().await;
}

#[test]
fn headers_that_are_lists_are_read_word_by_word() {
    let mut headers = HeaderMap::new();
    headers.append(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
    headers.append(UPGRADE, HeaderValue::from_static("WebSocket"));
    assert!(names(&headers, CONNECTION, "upgrade"));
    assert!(names(&headers, UPGRADE, "websocket"));
    assert!(!names(&headers, CONNECTION, "up"));
    assert!(!names(&HeaderMap::new(), UPGRADE, "websocket"));
}
