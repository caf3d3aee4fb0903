//! A WebSocket of a leader that is a stream of HTTP/2.

use std::sync::atomic::Ordering;
use std::time::Duration;

use apiloom_client::controller::{
    Cancel, ElectionConfig, LeaderElector, Leadership, Lease, LeaseError, LeaseStore,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use http::Method;
use tokio::sync::oneshot;

use super::stream_limit::{open, start};

/// A lease that this process holds alone.
struct Free;

impl LeaseStore for Free {
    fn get(&self) -> BoxFuture<'_, Result<Option<Lease>, LeaseError>> {
        async { Ok(None) }.boxed()
    }
    fn create(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        async { Ok(lease) }.boxed()
    }
    fn update(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        async { Ok(lease) }.boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trap_42_a_websocket_over_http2_is_reset_when_the_leader_stops() {
    let (client, seen) = start().await;
    // A connection of HTTP/2, for the socket too.
    let stream = open(&client, 1).await;
    let elector = LeaderElector::new(Free, "a", ElectionConfig::default()).unwrap();
    let cancel = Cancel::new();
    let (send, receive) = oneshot::channel();
    let election = tokio::spawn({
        let cancel = cancel.clone();
        async move {
            let work = |leadership: Leadership| async move {
                send.send(leadership.clone()).unwrap();
                leadership.cancel().cancelled().await;
            };
            elector.run(&cancel, work).await
        }
    });
    let leadership = receive.await.unwrap();
    let request = client.guarded(&leadership).request(Method::GET, "/console");
    let mut socket = request.websocket(&[]).await.unwrap();
    let now = || seen.open.load(Ordering::SeqCst);
    assert_eq!(now(), 2);
    cancel.cancel();
    election.await.unwrap().unwrap();
    // Nothing polls the socket, and the server sees its end.
    let reset = async {
        while now() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let reset = tokio::time::timeout(Duration::from_secs(20), reset);
    reset.await.expect("the socket is reset");
    let error = socket.receive().await.unwrap_err();
    assert!(error.to_string().contains("not the leader"), "{error}");
    drop(stream);
}
