//! Factories of one client: what their informers share, and what each has for itself.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::*;
use crate::cache::{ByOwner, Event, Index, Subscription};
use crate::metrics::Registry;
use crate::transport::Body;

/// The server's side of a watch that a script answers with.
struct Watch(UnboundedSender<String>);

impl Watch {
    /// Adds a watch to a script.
    fn of(script: &Script) -> Self {
        let (sender, receiver) = unbounded_channel::<String>();
        let events = stream::unfold(receiver, |mut receiver| async {
            let event = receiver.recv().await?;
            Some((
                Ok::<_, Infallible>(Frame::data(Bytes::from(event))),
                receiver,
            ))
        });
        let body = StreamBody::new(events);
        let _ = script
            .clone()
            .then(move || Ok(Response::new(Body::new(body))));
        Self(sender)
    }
    fn send(&self, event: String) {
        self.0.send(event).expect("the watch is read");
    }
    fn is_open(&self) -> bool {
        !self.0.is_closed()
    }
    async fn closed(&self) {
        timeout(LIMIT, self.0.closed()).await.expect("it is closed");
    }
}

/// A script with one watch, whose initial state is the object `a`.
fn one_watch() -> (Script, Watch) {
    let script = Script::new();
    let watch = Watch::of(&script);
    watch.send(event("ADDED", &object("a", 3)));
    watch.send(end_of_initial_events(9));
    (script, watch)
}

fn feeds(client: &Client) -> Arc<Feeds> {
    client.shared()
}

async fn sync(factory: &InformerFactory) {
    factory.start();
    factory.wait_for_sync(LIMIT).await.expect("synced");
}

async fn shows(informer: &Informer<Config>, name: &str) {
    let lister = informer.lister();
    let shown = lister.wait_until(|| lister.get("ns", name).is_some());
    timeout(LIMIT, shown).await.expect("it is shown");
}

/// The next event, as text; `None` if there is none now.
async fn next(subscription: &mut Subscription<Config>) -> Option<String> {
    let event = timeout(LIMIT, subscription.next()).await.ok()?;
    Some(match event {
        Some(Event::Added { object, initial }) => format!("added {} {initial}", object.name()),
        Some(Event::Updated { new, .. }) => format!("updated {}", new.name()),
        Some(Event::Synced) => "synced".to_owned(),
        Some(event) => format!("{event:?}"),
        None => "the end".to_owned(),
    })
}

#[tokio::test(start_paused = true)]
async fn factories_of_one_client_have_one_watch_and_end_one_by_one() {
    let (script, watch) = one_watch();
    let client = Client::new(script.clone());
    let first = InformerFactory::new(&client);
    let second = InformerFactory::new(&client.clone());
    let (one, other) = (first.informer::<Config>(), second.informer::<Config>());
    let (mut to_one, mut to_other) = (one.subscribe(), other.subscribe());
    sync(&first).await;
    sync(&second).await;
    for subscription in [&mut to_one, &mut to_other] {
        assert_eq!(next(subscription).await.as_deref(), Some("added a true"));
        assert_eq!(next(subscription).await.as_deref(), Some("synced"));
    }
    let objects = [&one, &other].map(|informer| informer.lister().get("ns", "a"));
    let [Some(a), Some(same)] = objects else {
        panic!("{objects:?}");
    };
    assert!(Arc::ptr_eq(&a, &same));

    first.shutdown().await;
    assert_eq!(next(&mut to_one).await.as_deref(), Some("the end"));
    watch.send(event("ADDED", &object("b", 10)));
    assert_eq!(next(&mut to_other).await.as_deref(), Some("added b false"));
    assert_eq!(next(&mut to_one).await.as_deref(), Some("the end"));
    assert!(watch.is_open());
    assert_eq!(script.lines().len(), 1, "{:?}", script.lines());

    second.shutdown().await;
    watch.closed().await;
    assert_eq!(next(&mut to_other).await.as_deref(), Some("the end"));
    assert_eq!(feeds(&client).len(), 0);

    // What has ended is not read again: another factory begins with a cache of its own.
    let watch = Watch::of(&script);
    watch.send(event("ADDED", &object("c", 20)));
    watch.send(end_of_initial_events(20));
    let third = InformerFactory::new(&client);
    let anew = third.informer::<Config>();
    assert_eq!(anew.lister().len(), 0);
    sync(&third).await;
    let names: Vec<_> = anew
        .lister()
        .list()
        .iter()
        .map(|c| c.name().to_owned())
        .collect();
    assert_eq!(names, ["c"]);
    assert_eq!(script.lines().len(), 2);
    assert!(!script.lines()[1].contains("resourceVersion=9"));
    third.shutdown().await;
    watch.closed().await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_was_not_started_tells_nothing() {
    let (script, watch) = one_watch();
    let client = Client::new(script.clone());
    let (first, second) = (InformerFactory::new(&client), InformerFactory::new(&client));
    let (waiting, running) = (first.informer::<Config>(), second.informer::<Config>());
    let mut before = waiting.subscribe().resync(Duration::from_secs(1));
    let keys = waiting.subscribe().keys_only();
    sync(&second).await;
    let mut late = waiting.subscribe();
    assert_eq!(next(&mut before).await, None);
    assert_eq!(next(&mut late).await, None);
    assert_eq!(keys.metrics().waiting, 0);
    let error = first.wait_for_sync(LIMIT).await.unwrap_err();
    let expected = "the cache of configs.ex.io was not started";
    assert_eq!(error.to_string(), expected);

    // It keeps the cache of the other one, so that it has a state when it is started.
    second.shutdown().await;
    watch.send(event("ADDED", &object("b", 10)));
    shows(&waiting, "b").await;
    sync(&first).await;
    for subscription in [&mut late, &mut before] {
        let mut events = Vec::new();
        for _ in 0..3 {
            events.push(next(subscription).await.expect("an event"));
        }
        events.sort();
        assert_eq!(events, ["added a true", "added b true", "synced"]);
    }
    assert_eq!(keys.metrics().waiting, 3);
    watch.send(event("MODIFIED", &object("b", 11)));
    assert_eq!(next(&mut late).await.as_deref(), Some("updated b"));
    assert_eq!(running.lister().len(), 2);
    assert_eq!(script.lines().len(), 1);
    first.shutdown().await;
    watch.closed().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_before_a_shutdown_ends_too() {
    let (script, watch) = one_watch();
    let client = Client::new(script);
    let (first, second) = (InformerFactory::new(&client), InformerFactory::new(&client));
    let (one, other) = (first.informer::<Config>(), second.informer::<Config>());
    let mut told = one.subscribe();
    sync(&first).await;
    drop((second, other));
    assert_eq!(next(&mut told).await.as_deref(), Some("added a true"));
    assert!(watch.is_open());
    assert_eq!(feeds(&client).len(), 1);
    drop((first, one));
    watch.closed().await;
    assert_eq!(next(&mut told).await.as_deref(), Some("synced"));
    assert_eq!(next(&mut told).await.as_deref(), Some("the end"));
    assert_eq!(feeds(&client).len(), 0);
}

struct BySize;

impl Index<Config> for BySize {
    type Key = u32;
    const NAME: &'static str = "size";
    fn keys(object: &Config, emit: &mut dyn FnMut(u32)) {
        emit(object.size);
    }
}

#[tokio::test(start_paused = true)]
async fn an_index_of_one_is_no_matter_of_the_other() {
    let (script, watch) = one_watch();
    let client = Client::new(script.clone());
    let (first, second) = (InformerFactory::new(&client), InformerFactory::new(&client));
    let one = first.informer::<Config>().with_index::<BySize>();
    sync(&first).await;
    let other = second.informer::<Config>().with_index::<ByOwner>();
    sync(&second).await;
    assert_eq!(one.lister().by_index::<BySize>(&1).len(), 1);
    second.shutdown().await;
    watch.send(event("ADDED", &object("b", 10)));
    shows(&one, "b").await;
    assert_eq!(one.lister().by_index::<BySize>(&1).len(), 2);
    assert_eq!(other.lister().by_index::<ByOwner>(&"x".into()).len(), 0);
    assert_eq!(script.lines().len(), 1);
    first.shutdown().await;
}

/// Two factories that differ, and how many requests their informers send.
async fn requests_of(
    clients: [&Client; 2],
    informers: [fn(&InformerFactory) -> Informer<Config>; 2],
    script: &Script,
) -> usize {
    let before = script.lines().len();
    let factories = clients.map(InformerFactory::new);
    let mut kept = Vec::new();
    for (factory, informer) in factories.iter().zip(informers) {
        let informer = informer(factory);
        informer.start();
        informer.wait_for_sync(LIMIT).await.expect("synced");
        kept.push(informer);
    }
    for informer in &kept {
        informer.shutdown().await;
    }
    script.lines().len() - before
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shared_by_informers_that_are_not_equal() {
    let mut script = Script::new();
    for _ in 0..20 {
        let pieces = [event("ADDED", &object("a", 3)), end_of_initial_events(9)];
        script = script.pieces(&[&pieces[0], &pieces[1]], End::Open);
    }
    let client = Client::new(script.clone());
    let plain: fn(&InformerFactory) -> Informer<Config> = InformerFactory::informer;
    assert_eq!(requests_of([&client; 2], [plain; 2], &script).await, 1);
    let others: [fn(&InformerFactory) -> Informer<Config>; 6] = [
        |factory| factory.strip(Strip::NOTHING).informer(),
        |factory| factory.namespace("ns").informer(),
        |factory| factory.labels("app=x").informer(),
        |factory| factory.fields("metadata.name=a").informer(),
        |factory| {
            factory.informer_with(|builder| {
                builder.transform(|config: &mut Config| {
                    config.size += 1;
                    Ok(())
                })
            })
        },
        |factory| factory.informer_with(|builder| builder),
    ];
    for other in others {
        assert_eq!(requests_of([&client; 2], [plain, other], &script).await, 2);
        assert_eq!(feeds(&client).len(), 0);
    }
    let wrapped = client.wrap_transport(|_| script.clone());
    let builder = client.rebuild().header("impersonate-user", "other");
    let another = builder.build().expect("a client");
    for other in [wrapped, another, client.on_write(|_, _| {})] {
        assert_eq!(requests_of([&client, &other], [plain; 2], &script).await, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_reads_another_type_asks_the_server_when_the_last_of_the_others_ends() {
    let (script, watch) = one_watch();
    let client = Client::new(script.clone());
    let dynamics = [(); 2].map(|()| InformerFactory::new(&client));
    let resource = Config::api_resource();
    let handled = Arc::new(Mutex::new(0));
    let informer = dynamics[0].dynamic_informer(&resource);
    let count = Arc::clone(&handled);
    let _handler = informer.on_event(move |_| {
        *count.lock() += 1;
        std::future::ready(())
    });
    let _other = dynamics[1].dynamic_informer(&resource);
    let typed = InformerFactory::new(&client);
    let configs = typed.informer::<Config>();
    sync(&typed).await;
    assert_eq!(*handled.lock(), 0, "the other one was not started");
    for dynamic in &dynamics {
        sync(dynamic).await;
    }
    dynamics[0].shutdown().await;
    watch.send(event("ADDED", &object("b", 10)));
    shows(&configs, "b").await;
    assert_eq!(script.lines().len(), 1);
    // A watch within a second counts as a failure.
    tokio::time::sleep(LIMIT).await;

    let of_typed = Watch::of(&script);
    dynamics[1].shutdown().await;
    watch.closed().await;
    of_typed.send(event("ADDED", &object("c", 11)));
    shows(&configs, "c").await;
    assert_eq!(script.lines().len(), 2);
    assert_eq!(configs.metrics().failures, 0);
    typed.shutdown().await;
    of_typed.closed().await;
    assert_eq!(feeds(&client).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_registry_has_the_metrics_of_a_shared_cache_once() {
    let (script, _watch) = one_watch();
    let client = Client::new(script);
    let (first, second) = (InformerFactory::new(&client), InformerFactory::new(&client));
    let (one, other) = (first.informer::<Config>(), second.informer::<Config>());
    let subscriptions = [one.subscribe(), other.subscribe().named("b")];
    sync(&first).await;
    sync(&second).await;
    let registries = [Registry::new(), Registry::new()];
    for registry in &registries {
        first.register_metrics(registry);
        second.register_metrics(registry);
        let text = registry.text();
        let line = r#"apiloom_informer_objects{name="configs.ex.io"} 1"#;
        assert!(text.contains(line), "{text}");
        assert!(text.contains(r#"subscriber="b""#), "{text}");
    }
    assert_eq!(one.metrics().subscribers.len(), 1);
    assert_eq!(other.metrics().subscribers[0].name, "b");
    drop(subscriptions);
}
