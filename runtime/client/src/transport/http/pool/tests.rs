//! Requests that meet the end of their connection.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Method, Request};
use tokio::io::AsyncWriteExt as _;

use super::super::connection;
use super::*;
use crate::transport::Body;

/// SETTINGS without any, by which a server of HTTP/2 begins.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// A request that is lost would wait for ever; one that is not ends at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a request meets the end of its connection. Of 400 one was lost, when senders were kept longer than their connection.
const ROUNDS: usize = 3_000;

fn empty_pool() -> Arc<Pool> {
    let settings = Settings {
        connect_timeout: PATIENCE,
        max_streams: 100,
        max_connections: 100,
        is_http1_only: false,
    };
    let origin = Origin::parse("http://server").unwrap();
    Arc::new(Pool::new(
        origin,
        None,
        settings,
        #[cfg(feature = "tls")]
        None,
    ))
}

fn request() -> Request<Body> {
    let request = Request::builder()
        .method(Method::POST)
        .uri("http://server/");
    request.body(Body::from(Bytes::from_static(b"{}"))).unwrap()
}

/// Sends a request through a pool with one connection, whose server closes it after about as many steps as `delay`. Whether the
/// request was sent, as far as the connection knows.
async fn is_taken(is_http2: bool, delay: usize) -> bool {
    let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
    if is_http2 {
        theirs.write_all(&SETTINGS).await.unwrap();
    }
    let pool = empty_pool();
    let mut connected = connect::handshake(Box::pin(ours), is_http2).await.unwrap();
    if let NewConnection::Http1(sender) = &mut connected {
        sender.requests.ready().await.unwrap();
    }
    pool.take(connected, 0).await;
    let lease = pool.lease().await.unwrap();
    let begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&begun);
    let closing = std::thread::spawn(move || {
        while !begins.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        drop(theirs);
    });
    begun.store(true, Ordering::Relaxed);
    for _ in 0..delay {
        std::hint::spin_loop();
    }
    let sent = tokio::time::timeout(PATIENCE, lease.send(request()));
    let sent = sent.await.expect("the request has a result");
    closing.join().unwrap();
    !matches!(sent, connection::Attempt::NotTaken(_))
}

/// The time between the two is changed by each result, so that either is as likely as the other.
async fn meet(is_http2: bool) {
    let (mut taken, mut delay) = (0, 0_usize);
    for _ in 0..ROUNDS {
        if is_taken(is_http2, delay).await {
            taken += 1;
            delay += 10;
        } else {
            delay = delay.saturating_sub(10);
        }
    }
    assert!(
        (1..ROUNDS).contains(&taken),
        "{taken} of {ROUNDS} were taken"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_meets_the_end_of_its_connection_has_a_result() {
    meet(false).await;
    meet(true).await;
}
