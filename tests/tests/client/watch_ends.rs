//! How watches end, beside the stop of a server, which is in `verbs.rs`, and what informers make of it.

use std::time::Duration;

use apiloom::server::registry::CatalogChange;
use apiloom::testing::TestServer;
use apiloom_client::cache::{CacheState, Informer, InformerFactory};
use apiloom_client::client::WatchStream;
use apiloom_client::{Error, HasMetadata as _, WatchEvent};
use apiloom_meta::GroupResource;
use apiloom_tests::network::Proxy;
use apiloom_tests::{Backend, Cluster};
use futures_util::StreamExt as _;
use tokio::time::timeout;
use wardle::v1alpha1::{Fischer, Flunder};

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
        until_synced(&mut events).await;
        proxy.cut().await;
        let end = timeout(LIMIT, events.next()).await.expect("it ends");
        assert!(matches!(end, Some(Err(Error::Transport(_)))), "{end:?}");
        assert!(events.next().await.is_none(), "it has ended");
        proxy.heal();
    }
}

/// A watch of all flunders that has sent its initial events.
async fn open(server: &TestServer) -> WatchStream<Flunder> {
    let flunders = server.client().namespaced::<Flunder>("default");
    let mut events = flunders.watch().initial_events().await.unwrap();
    until_synced(&mut events).await;
    events
}

async fn until_synced(events: &mut WatchStream<Flunder>) {
    loop {
        let event = timeout(LIMIT, events.next()).await.expect("an event");
        if let WatchEvent::Bookmark(bookmark) = event.unwrap().unwrap()
            && bookmark.ends_initial_events
        {
            return;
        }
    }
}

/// How a watch ends: `None` in order. No event comes before the end, or after it.
async fn end(events: &mut WatchStream<Flunder>) -> Option<Error> {
    let end = timeout(LIMIT, events.next()).await.expect("it ends");
    let error = end.map(|end| end.expect_err("an event"));
    if error.is_some() {
        assert!(events.next().await.is_none(), "it has ended");
    }
    error
}

/// An informer that shows the objects of these names.
async fn informer_of(server: &TestServer, names: &[&str]) -> (InformerFactory, Informer<Flunder>) {
    let factory = InformerFactory::new(&server.client());
    let informer = factory.informer::<Flunder>();
    factory.start();
    factory.wait_for_sync(LIMIT).await.unwrap();
    shows(&informer, names).await;
    (factory, informer)
}

/// Waits until an informer shows the objects of these names.
async fn shows(informer: &Informer<Flunder>, names: &[&str]) {
    let shown = || {
        let objects = informer.lister().list();
        let names = objects.iter().map(|object| object.name().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let waited = timeout(LIMIT, async {
        while shown() != names {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    assert!(waited.await.is_ok(), "{:?}, and not {names:?}", shown());
}

/// Waits until the requests of an informer fail with this code.
async fn fails_with(informer: &Informer<Flunder>, code: u16) {
    let is_failure = |state: &CacheState| match state {
        CacheState::Degraded { error, .. } => error.code == Some(code),
        CacheState::Syncing | CacheState::Live { .. } => false,
    };
    let mut state = informer.watch_state();
    let failed = timeout(LIMIT, state.wait_for(is_failure)).await;
    assert!(failed.is_ok(), "{:?}", informer.state());
}

#[tokio::test]
async fn a_watch_ends_in_order_when_its_kind_leaves_the_server() {
    let server = server().await;
    let client = server.client();
    let flunders = client.namespaced::<Flunder>("default");
    flunders.create(&flunder("a")).await.unwrap();
    let mut events = open(&server).await;
    let mut others = client.cluster::<Fischer>().watch().await.unwrap();
    let (factory, informer) = informer_of(&server, &["a"]).await;

    let registry = server.control().registry();
    let resource = GroupResource::new("wardle.example.com", "flunders");
    let left = CatalogChange::new().remove(resource);
    registry.change(left).await.unwrap();
    let error = end(&mut events).await;
    assert!(error.is_none(), "{error:?}");
    assert!(flunders.watch().await.unwrap_err().is_not_found());
    fails_with(&informer, 404).await;
    shows(&informer, &["a"]).await;

    // The others go on, and the informer does when the kind is back.
    let fischer = Fischer {
        metadata: flunder("f").metadata,
        disallowed_flunders: Vec::new(),
    };
    client.cluster().create(&fischer).await.unwrap();
    let other = timeout(LIMIT, others.next()).await.expect("an event");
    assert!(matches!(other, Some(Ok(WatchEvent::Added(_)))), "{other:?}");
    let back = CatalogChange::new()
        .kind::<wardle::v1beta1::Flunder>()
        .kind::<Flunder>();
    registry.change(back).await.unwrap();
    flunders.create(&flunder("b")).await.unwrap();
    shows(&informer, &["a", "b"]).await;
    factory.shutdown().await;
    server.stop().await;
}

#[tokio::test]
async fn a_watch_ends_with_an_error_at_an_object_that_cannot_be_decoded() {
    let server = server().await;
    let control = server.control();
    let flunders = server.client().namespaced::<Flunder>("default");
    let created = flunders.create(&flunder("a")).await.unwrap();
    let mut events = open(&server).await;
    let (factory, informer) = informer_of(&server, &["a"]).await;

    let damaged = control.seed_raw::<Flunder>(Some("default"), "b", "{\"metadata\":");
    damaged.await.unwrap();
    let error = end(&mut events).await.expect("an error");
    assert_eq!(error.code(), Some(500));
    assert!(error.to_string().contains("flunders/default/b"), "{error}");
    // One that begins before the object meets it again.
    let again = flunders.watch().from(created.resource_version());
    let error = end(&mut again.await.unwrap()).await.expect("an error");
    assert_eq!(error.code(), Some(500));
    fails_with(&informer, 500).await;
    shows(&informer, &["a"]).await;

    // The object is repaired, and what it was before is forgotten.
    let mut repaired = serde_json::to_value(flunder("b")).unwrap();
    repaired["apiVersion"] = "wardle.example.com/v1beta1".into();
    repaired["kind"] = "Flunder".into();
    repaired["metadata"]["namespace"] = "default".into();
    let repaired = control.seed_raw::<Flunder>(Some("default"), "b", repaired.to_string());
    repaired.await.unwrap();
    control.compact().await.unwrap();
    shows(&informer, &["a", "b"]).await;
    factory.shutdown().await;
    server.stop().await;
}

#[tokio::test]
async fn a_watch_expires_when_the_watch_cache_is_filled_again() {
    let server = server().await;
    let flunders = server.client().namespaced::<Flunder>("default");
    flunders.create(&flunder("a")).await.unwrap();
    let mut events = open(&server).await;
    let (factory, informer) = informer_of(&server, &["a"]).await;

    server.control().restart_watch_caches();
    let error = end(&mut events).await.expect("an error");
    assert!(error.is_expired(), "{error}");
    flunders.create(&flunder("b")).await.unwrap();
    shows(&informer, &["a", "b"]).await;
    // It is read again, and no object is taken for another one.
    assert!(informer.metrics().lists + informer.metrics().watches > 1);
    // A watch of the new state gets what changes.
    let mut events = open(&server).await;
    flunders.delete("a").await.unwrap();
    let event = timeout(LIMIT, events.next()).await.expect("an event");
    assert!(
        matches!(event, Some(Ok(WatchEvent::Deleted(_)))),
        "{event:?}"
    );
    shows(&informer, &["b"]).await;
    factory.shutdown().await;
    server.stop().await;
}

#[tokio::test]
async fn a_watch_from_a_version_that_is_forgotten_expires_in_the_stream() {
    let server = server().await;
    let flunders = server.client().namespaced::<Flunder>("default");
    let created = flunders.create(&flunder("a")).await.unwrap();
    let mut open = open(&server).await;
    server.control().compact().await.unwrap();
    // The request is accepted: the answer is an event.
    let mut late = flunders
        .watch()
        .from(created.resource_version())
        .await
        .unwrap();
    let error = end(&mut late).await.expect("an error");
    assert!(error.is_expired(), "{error}");
    // One that was open goes on.
    flunders.create(&flunder("b")).await.unwrap();
    let event = timeout(LIMIT, open.next()).await.expect("an event");
    assert!(matches!(event, Some(Ok(WatchEvent::Added(_)))), "{event:?}");
    drop(open);
    server.stop().await;
}
