//! Informers against real servers: one in memory, and one that is stopped and started again.

use std::collections::BTreeMap;
use std::time::Duration;

use apiloom_client::cache::{
    CacheState, Event, Index, Informer, InformerFactory, ResourceVersion, Strip, Subscription,
};
use apiloom_client::{Client, HasMetadata as _};
use apiloom_tests::network::Proxy;
use apiloom_tests::{Backend, Cluster};
use tokio::time::timeout;
use wardle::v1alpha1::Flunder;

use super::over_tls::{client_at, client_of};
use super::{flunder, server};

const LIMIT: Duration = Duration::from_secs(60);

/// Index by the flunder that a flunder refers to.
struct ByReference;

impl Index<Flunder> for ByReference {
    type Key = String;
    const NAME: &'static str = "reference";
    fn keys(flunder: &Flunder, emit: &mut dyn FnMut(String)) {
        let spec = flunder.spec.as_ref();
        let reference = spec.and_then(|spec| spec.reference.clone());
        reference.into_iter().for_each(emit);
    }
}

/// Objects by name with their versions, as the events of a subscriber tell.
#[derive(Default)]
struct Known {
    versions: BTreeMap<String, String>,
    is_synced: bool,
}

impl Known {
    fn follow(&mut self, event: &Event<Flunder>) {
        let versions = &mut self.versions;
        let mut put = |object: &Flunder| {
            versions.insert(
                object.name().to_owned(),
                object.resource_version().to_owned(),
            )
        };
        match event {
            Event::Added { object, initial } => {
                assert_eq!(*initial, !self.is_synced);
                assert_eq!(put(object), None);
            }
            Event::Updated { old, new } => {
                assert_eq!(put(new).as_deref(), Some(old.resource_version()));
            }
            Event::Deleted { last, .. } => assert!(versions.remove(last.name()).is_some()),
            Event::Synced => self.is_synced = true,
            Event::Lagged { .. } => panic!("events are combined"),
            Event::Resync { .. } => panic!("no resync was asked for"),
        }
    }

    /// Reads events until they tell of these objects.
    async fn until(&mut self, subscription: &mut Subscription<Flunder>, expected: &Objects) {
        let reading = async {
            while !self.is_synced || self.versions != *expected {
                let event = subscription.next().await.expect("the informer runs");
                self.follow(&event);
            }
        };
        let result = timeout(LIMIT, reading).await;
        assert!(result.is_ok(), "{:?}, and not {expected:?}", self.versions);
    }
}

type Objects = BTreeMap<String, String>;

/// The objects of the server.
async fn objects(client: &Client) -> Objects {
    let list = client.all_namespaces::<Flunder>().list().await.unwrap();
    let objects = list.items.iter();
    objects
        .map(|object| {
            (
                object.name().to_owned(),
                object.resource_version().to_owned(),
            )
        })
        .collect()
}

fn shown(informer: &Informer<Flunder>) -> Objects {
    let objects = informer.lister().list();
    objects
        .iter()
        .map(|object| {
            (
                object.name().to_owned(),
                object.resource_version().to_owned(),
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_informer_shows_what_a_server_has() {
    let server = server().await;
    let reader = server.client_builder().user_agent("informers");
    let reader = reader.build().unwrap();
    let flunders = server.client().namespaced::<Flunder>("default");
    for name in ["a", "b", "c"] {
        flunders.create(&flunder(name)).await.unwrap();
    }

    let factory = InformerFactory::new(&reader);
    let informer = factory.informer::<Flunder>();
    informer.lister().add_index::<ByReference>();
    let selected = factory
        .labels("app=b")
        .strip(Strip::NOTHING)
        .informer::<Flunder>();
    let mut subscription = informer.subscribe();
    factory.start();
    factory.wait_for_sync(LIMIT).await.unwrap();

    // Writes are seen at their versions.
    let mut b = flunders.get("b").await.unwrap();
    b.spec.as_mut().unwrap().reference = Some("special".to_owned());
    let b = flunders.update(&b).await.unwrap();
    flunders.delete("c").await.unwrap();
    let d = flunders.create(&flunder("d")).await.unwrap();
    let version = ResourceVersion::new(d.resource_version()).unwrap();
    informer.lister().wait_for(&version, LIMIT).await.unwrap();
    assert_eq!(shown(&informer), objects(&server.client()).await);
    let found = informer
        .lister()
        .by_index::<ByReference>(&"special".to_owned());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].resource_version(), b.resource_version());
    assert_eq!(found[0].metadata.managed_fields, []);

    // The other informer has the one object, and its managedFields. An object that is no longer selected leaves it.
    let version = ResourceVersion::new(b.resource_version()).unwrap();
    selected.lister().wait_for(&version, LIMIT).await.unwrap();
    assert_eq!(selected.lister().len(), 1);
    assert!(
        !selected.lister().list()[0]
            .metadata
            .managed_fields
            .is_empty()
    );
    let mut events = selected.subscribe();
    // Read first: of an object that comes and goes unread, nothing is announced.
    let initial = timeout(LIMIT, events.next()).await.unwrap();
    assert!(
        matches!(&initial, Some(Event::Added { object, .. }) if object.name() == "b"),
        "{initial:?}"
    );
    let mut b = flunders.get("b").await.unwrap();
    b.metadata.labels.clear();
    flunders.update(&b).await.unwrap();
    let next = async {
        loop {
            if let Event::Deleted { last, .. } = events.next().await.expect("it runs") {
                return last;
            }
        }
    };
    let last = timeout(LIMIT, next).await.unwrap();
    assert_eq!(last.name(), "b");
    assert!(selected.lister().is_empty());

    let expected = objects(&server.client()).await;
    Known::default().until(&mut subscription, &expected).await;
    // One request for each informer: the state and all changes came over one watch.
    let mut sent = server.control().actions();
    sent.retain(|action| action.user_agent == "informers");
    assert_eq!(sent.len(), 2, "{sent:?}");
    let is_stream = |query: &str| query.contains("sendInitialEvents=true");
    assert!(
        sent.iter()
            .all(|one| one.uri.query().is_some_and(is_stream)),
        "{sent:?}"
    );
    factory.shutdown().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_informer_without_streaming_lists_shows_the_same() {
    let server = server().await;
    let flunders = server.client().namespaced::<Flunder>("default");
    for number in 0..25 {
        flunders
            .create(&flunder(&format!("f{number}")))
            .await
            .unwrap();
    }
    let factory = InformerFactory::new(&server.client());
    let informer = factory.informer_with::<Flunder>(|builder| {
        let traits = apiloom_client::cache::ServerTraits::new();
        traits.refuse_streaming_lists();
        builder.server(traits).page_size(10)
    });
    let mut subscription = informer.subscribe();
    informer.start();
    informer.wait_for_sync(LIMIT).await.unwrap();
    flunders.delete("f7").await.unwrap();
    flunders.create(&flunder("g")).await.unwrap();
    let expected = objects(&server.client()).await;
    Known::default().until(&mut subscription, &expected).await;
    assert_eq!(shown(&informer), expected);
    factory.shutdown().await;
    server.stop().await;
}

/// The server is behind a proxy, since a restarted one has another port.
#[tokio::test(flavor = "multi_thread")]
async fn an_informer_outlives_restarts_of_its_server_and_cuts_of_the_network() {
    let mut cluster = Cluster::start(Backend::Embedded);
    let proxy = Proxy::start(address(&cluster)).await;
    let url = format!("https://{}", proxy.address());
    let client = client_at(&cluster, &url);
    let flunders = client.namespaced::<Flunder>("default");
    for name in ["a", "b", "c"] {
        flunders.create(&flunder(name)).await.unwrap();
    }
    let factory = InformerFactory::new(&client);
    let informer = factory.informer::<Flunder>();
    let (mut subscription, mut known) = (informer.subscribe(), Known::default());
    factory.start();
    let expected = objects(&client).await;
    known.until(&mut subscription, &expected).await;

    cluster.kill();
    until_degraded(&informer).await;
    assert_eq!(shown(&informer), expected, "the objects remain readable");
    cluster.start_again();
    proxy.retarget(address(&cluster));
    let direct = client_of(&cluster, |builder| builder);
    let flunders = direct.namespaced::<Flunder>("default");
    flunders.delete("b").await.unwrap();
    flunders.create(&flunder("d")).await.unwrap();
    let expected = objects(&direct).await;
    known.until(&mut subscription, &expected).await;

    proxy.cut().await;
    until_degraded(&informer).await;
    flunders.delete("c").await.unwrap();
    flunders.create(&flunder("e")).await.unwrap();
    let expected = objects(&direct).await;
    assert_ne!(shown(&informer), expected);
    proxy.heal();
    known.until(&mut subscription, &expected).await;
    assert_eq!(shown(&informer), expected);
    let mut state = informer.watch_state();
    let live = state.wait_for(|state| matches!(state, CacheState::Live { .. }));
    drop(
        timeout(LIMIT, live)
            .await
            .expect("the server answers")
            .unwrap(),
    );
    factory.shutdown().await;
}

/// Host and port of the server.
fn address(cluster: &Cluster) -> String {
    let url = cluster.server().url();
    url.trim_start_matches("https://")
        .trim_end_matches('/')
        .to_owned()
}

async fn until_degraded(informer: &Informer<Flunder>) {
    let mut state = informer.watch_state();
    let degraded = state.wait_for(|state| matches!(state, CacheState::Degraded { .. }));
    drop(
        timeout(LIMIT, degraded)
            .await
            .expect("the failure is shown")
            .unwrap(),
    );
}
