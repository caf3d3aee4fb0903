//! How watches end, beside the stop of a server and the version that has expired, which are in `verbs.rs`.

use std::time::Duration;

use apiloom_client::{Error, HasMetadata as _, WatchEvent};
use apiloom_tests::network::Proxy;
use apiloom_tests::{Backend, Cluster};
use futures_util::StreamExt as _;
use tokio::time::timeout;
use wardle::v1alpha1::Flunder;

use super::over_tls::client_through;
use super::{flunder, server};

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_watch_ends_in_order_when_its_time_is_over() {
    let server = server().await;
    let flunders = server.client().namespaced::<Flunder>("default");
    let created = flunders.create(&flunder("a")).await.unwrap();
    let watch = flunders.watch().from(created.resource_version());
    let mut events = watch.timeout(Duration::from_secs(1)).await.unwrap();
    loop {
        match timeout(LIMIT, events.next()).await.expect("it ends") {
            // The last one comes shortly before the end.
            Some(Ok(WatchEvent::Bookmark(_))) => {}
            end => {
                assert!(end.is_none(), "{end:?}");
                break;
            }
        }
    }
    assert!(events.next().await.is_none(), "it has ended");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_whose_connection_breaks_ends_with_an_error() {
    let cluster = Cluster::start(Backend::Embedded);
    let target = cluster.server().url().trim_start_matches("https://");
    let proxy = Proxy::start(target.to_owned()).await;
    for http1 in [false, true] {
        let client = client_through(&cluster, &proxy, |builder| {
            if http1 { builder.http1_only() } else { builder }
        });
        let flunders = client.namespaced::<Flunder>("default");
        let mut events = flunders.watch().initial_events().await.unwrap();
        loop {
            let event = timeout(LIMIT, events.next()).await.expect("an event");
            if let WatchEvent::Bookmark(bookmark) = event.unwrap().unwrap()
                && bookmark.ends_initial_events
            {
                break;
            }
        }
        proxy.cut().await;
        let end = timeout(LIMIT, events.next()).await.expect("it ends");
        assert!(matches!(end, Some(Err(Error::Transport(_)))), "{end:?}");
        assert!(events.next().await.is_none(), "it has ended");
        proxy.heal();
    }
}
