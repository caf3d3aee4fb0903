//! Subscribers of informers: what they see, when they join and leave, and how informers start and stop.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::*;
use crate::cache::event::{Listener, object_of};
use crate::cache::reflector::script::Script;
use crate::cache::store::{Change, Delta, Observation};
use crate::cache::subscriber::{Lag, SubscriberMetrics};
use crate::cache::test_object::{ByNode, Pod, pod};

/// An informer whose server follows a script, with streaming lists.
pub(super) fn informer(answers: &[&str]) -> (Informer<Pod>, Arc<Script>) {
    let script = Script::new(answers.iter().map(|answer| (*answer).to_owned()));
    let informer = Informer::builder(Arc::clone(&script)).name("pods").build();
    (informer, script)
}

pub(super) fn text(event: &Event<Pod>) -> String {
    match event {
        Event::Added { object, initial } => {
            let mark = if *initial { "*" } else { "" };
            format!("+{}@{}{mark}", object.name, object.version)
        }
        Event::Updated { old, new } => format!("~{}@{}>{}", new.name, old.version, new.version),
        Event::Resync { object } => format!("={}@{}", object.name, object.version),
        Event::Deleted { last, observed } => {
            let mark = if *observed == Observation::Seen {
                ""
            } else {
                "?"
            };
            format!("-{}@{}{mark}", last.name, last.version)
        }
        Event::Synced => "synced".to_owned(),
        Event::Lagged { skipped } => format!("lagged{skipped}"),
    }
}

/// The events that are there now.
pub(super) fn ready(subscription: &mut Subscription<Pod>) -> String {
    let mut texts = Vec::new();
    while let Some(Some(event)) = subscription.next().now_or_never() {
        texts.push(text(&event));
    }
    texts.join(" ")
}

pub(super) fn apply(informer: &Informer<Pod>, deltas: Vec<Delta<Pod>>) {
    informer.apply(deltas);
}

/// A complete state, as a list that was read.
pub(super) fn replace(informer: &Informer<Pod>, pods: Vec<Pod>) {
    let hub = informer.shared.hub();
    hub.open(&informer.shared.group);
    let mut relist = hub.begin_relist();
    for pod in pods {
        relist.put(pod);
    }
    hub.finish_relist(relist, ResourceVersion::new("9"));
}

#[tokio::test(start_paused = true)]
async fn events_are_those_of_the_server() {
    let (informer, _) = informer(&[
        "+a@1 +b@2 end@5 wait=2 ~a@6 wait=2 -b@7 +c@8 wait=2 410",
        "+a@6 end@9",
    ]);
    let mut subscription = informer.subscribe();
    informer.start();
    informer
        .wait_for_sync(Duration::from_secs(5))
        .await
        .expect("synced");
    assert_eq!(ready(&mut subscription), "+a@1* +b@2* synced");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(ready(&mut subscription), "~a@1>6 -b@7");
    assert_eq!(ready(&mut informer.subscribe()), "+a@6* synced");
}

#[tokio::test]
async fn pending_events_of_an_object_are_combined() {
    let (informer, _) = informer(&[]);
    replace(&informer, vec![pod("a", 1), pod("b", 1), pod("c", 1)]);
    let mut subscription = informer.subscribe();
    assert_eq!(ready(&mut subscription), "+a@1* +b@1* +c@1* synced");
    apply(
        &informer,
        vec![
            pod("a", 2).put(),
            pod("a", 3).put(),
            pod("new", 4).put(),
            pod("new", 5).put(),
            Delta::Delete(pod("b", 6)),
            pod("b", 7).put(),
            pod("b", 8).put(),
            pod("short", 9).put(),
            Delta::Delete(pod("short", 10)),
            pod("c", 11).put(),
            Delta::Delete(pod("c", 12)),
        ],
    );
    assert_eq!(subscription.backlog(), 4);
    assert_eq!(ready(&mut subscription), "~a@1>3 +new@5 -b@6 +b@8 -c@12");
    // Deleted, replaced and deleted again: the subscriber knew only the first one.
    apply(
        &informer,
        vec![
            Delta::Delete(pod("a", 20)),
            pod("a", 21).uid("other").put(),
            Delta::Delete(pod("a", 22).uid("other")),
        ],
    );
    assert_eq!(ready(&mut subscription), "-a@20");
}

#[tokio::test(start_paused = true)]
async fn objects_are_announced_again_at_intervals() {
    let (informer, _) = informer(&[]);
    replace(&informer, vec![pod("a", 1), pod("b", 1)]);
    let mut subscription = informer.subscribe().resync(Duration::from_secs(60));
    assert_eq!(ready(&mut subscription), "+a@1* +b@1* synced");
    let first = subscription.next().await.expect("an event");
    assert_eq!(text(&first), "=a@1");
    // A change takes the place of an announcement.
    apply(&informer, vec![pod("b", 2).put()]);
    assert_eq!(ready(&mut subscription), "~b@1>2");
}

#[tokio::test]
async fn trap_25_the_store_shows_an_event_when_it_is_handled() {
    let (informer, _) = informer(&[]);
    let (done, mut finished) = mpsc::unbounded_channel();
    let lister = informer.lister();
    let last = Arc::new(AtomicUsize::new(0));
    let _handler = informer.on_event({
        let last = Arc::clone(&last);
        move |event| {
            let (lister, last, done) = (lister.clone(), Arc::clone(&last), done.clone());
            async move {
                let Some(object) = event.object() else { return };
                let version: usize = object.version.parse().expect("a number");
                let stored = lister.get("default", "a").expect("the object is stored");
                let stored: usize = stored.version.parse().expect("a number");
                assert!(stored >= version, "{stored} before {version}");
                assert!(
                    last.swap(version, Ordering::SeqCst) < version,
                    "out of order"
                );
                if version == 500 {
                    done.send(()).expect("the test waits");
                }
            }
        }
    });
    for version in 1..=500 {
        apply(&informer, vec![pod("a", version).put()]);
        tokio::task::yield_now().await;
    }
    finished.recv().await.expect("all versions in order");
}

/// Checks, when it is told of a change, that the store and its index show it.
struct Reader {
    lister: Lister<Pod>,
    told: Arc<AtomicUsize>,
}

impl Listener<Pod> for Reader {
    fn on_changes(&mut self, changes: &[Change<Pod>], _: bool) -> Option<Lag> {
        for change in changes {
            let object = object_of(change);
            let stored = self.lister.get("default", &object.name);
            let indexed = |pod: &Pod| self.lister.by_index::<ByNode>(&pod.nodes[0]).len();
            match change {
                Change::Added(new) => assert_eq!(indexed(new), 1),
                Change::Updated { old, new } => assert_eq!([indexed(old), indexed(new)], [0, 1]),
                Change::Deleted { last, .. } => assert_eq!((indexed(last), &stored), (0, &None)),
            }
            if !matches!(change, Change::Deleted { .. }) {
                assert_eq!(stored.as_ref(), Some(object));
            }
            self.told.fetch_add(1, Ordering::SeqCst);
        }
        None
    }
    fn close(&mut self) {}
    fn metrics(&self) -> Option<SubscriberMetrics> {
        None
    }
}

#[tokio::test]
async fn trap_25_the_store_and_its_indexes_change_before_a_subscriber_is_told() {
    let (informer, _) = informer(&[]);
    let informer = informer.with_index::<ByNode>();
    let told = Arc::new(AtomicUsize::new(0));
    let reader = Reader {
        lister: informer.lister(),
        told: Arc::clone(&told),
    };
    let group = &informer.shared.group;
    informer.shared.hub().listen(group, |_, _| Box::new(reader));
    let on_node = |version: u8| {
        let mut pod = pod("a", version.into());
        pod.nodes = vec![version];
        pod
    };
    replace(&informer, vec![on_node(1)]);
    apply(&informer, vec![on_node(2).put()]);
    replace(&informer, vec![on_node(3)]);
    apply(&informer, vec![Delta::Delete(on_node(3))]);
    apply(&informer, vec![on_node(4).put()]);
    replace(&informer, Vec::new());
    assert_eq!(told.load(Ordering::SeqCst), 6);
}

#[tokio::test(start_paused = true)]
async fn trap_30_what_is_announced_again_is_not_transformed_again() {
    let script = Script::new(["+a@1 end@5 wait=200 -a@6".to_owned()]);
    let count = Arc::new(AtomicUsize::new(0));
    let informer = Informer::builder(script).transform({
        let count = Arc::clone(&count);
        move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    });
    let informer = informer.build();
    let mut subscription = informer.subscribe().resync(Duration::from_secs(60));
    informer.start();
    let mut texts = Vec::new();
    while texts.last().is_none_or(|last| last != "-a@6") {
        texts.push(text(&subscription.next().await.expect("an event")));
    }
    assert_eq!(texts, ["+a@1*", "synced", "=a@1", "=a@1", "=a@1", "-a@6"]);
    // The states 1 and 6.
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert_eq!(ready(&mut informer.subscribe()), "synced");
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn trap_26_a_blocked_handler_delays_no_other_and_its_backlog_is_bounded() {
    let (informer, _) = informer(&[]);
    let mut blocked = informer.on_event(|_| pending());
    let (sender, mut events) = mpsc::unbounded_channel();
    let _other = informer.on_event(move |event| {
        sender.send(text(&event)).expect("the test reads");
        async {}
    });
    replace(
        &informer,
        (0..10).map(|n| pod(&format!("p{n}"), 1)).collect(),
    );
    for _ in 0..11 {
        events.recv().await.expect("an event");
    }
    assert!(blocked.synced().now_or_never().is_none());
    for version in 2..2000_u64 {
        let short = format!("short-{version}");
        let changed = pod(&format!("p{}", version % 10), version);
        apply(
            &informer,
            vec![
                changed.put(),
                pod(&short, version).put(),
                Delta::Delete(pod(&short, version)),
            ],
        );
        assert!(blocked.backlog() <= 10, "{}", blocked.backlog());
        // The other one sees the change at once.
        assert!(events.recv().await.expect("an event").starts_with('~'));
    }
    replace(&informer, Vec::new());
    assert!(blocked.backlog() <= 10);
}

/// What a subscriber knows must follow from the events alone.
fn follow(known: &mut BTreeMap<String, Pod>, event: Event<Pod>) {
    match event {
        Event::Added { object, .. } => {
            let before = known.insert(object.name.clone(), (*object).clone());
            assert_eq!(before, None, "added twice");
        }
        Event::Updated { old, new } => {
            let before = known.insert(new.name.clone(), (*new).clone());
            assert_eq!(before.as_ref(), Some(&*old), "lost an update");
        }
        Event::Deleted { last, .. } => {
            assert!(known.remove(&last.name).is_some(), "deleted twice");
        }
        Event::Resync { object } => assert_eq!(known.get(&object.name), Some(&*object)),
        Event::Synced => {}
        Event::Lagged { .. } => panic!("events are combined"),
    }
}

/// Subscribers join and read while a thread writes.
#[test]
fn trap_27_subscribers_that_join_late_lose_nothing_and_see_nothing_twice() {
    let (informer, _) = informer_without_runtime();
    let is_done = AtomicBool::new(false);
    let joined = AtomicUsize::new(0);
    thread::scope(|scope| {
        let subscribers: Vec<_> = (0..3)
            .map(|seed| {
                let (informer, is_done, joined) = (&informer, &is_done, &joined);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    let mut rounds = 0;
                    loop {
                        let was_done = is_done.load(Ordering::SeqCst);
                        let mut subscription = informer.subscribe();
                        joined.fetch_add(1, Ordering::SeqCst);
                        let mut known = BTreeMap::new();
                        let mut is_initial = true;
                        for _ in 0..random.usize(1..2000) {
                            let Some(Some(event)) = subscription.next().now_or_never() else {
                                thread::yield_now();
                                continue;
                            };
                            if let Event::Added { initial, .. } = &event {
                                assert!(is_initial || !initial, "initial behind the mark");
                            }
                            is_initial &= !matches!(event, Event::Synced);
                            follow(&mut known, event);
                        }
                        rounds += 1;
                        if was_done && rounds > 3 {
                            while let Some(Some(event)) = subscription.next().now_or_never() {
                                follow(&mut known, event);
                            }
                            return known;
                        }
                    }
                })
            })
            .collect();
        let mut random = fastrand::Rng::with_seed(7);
        let mut live: BTreeMap<String, Pod> = BTreeMap::new();
        let mut version = 0;
        // Writing goes on until each subscriber has joined several times.
        while version < 20_000 || joined.load(Ordering::SeqCst) < 20 {
            version += 1;
            let name = format!("p{}", random.u8(0..20));
            let changed = pod(&name, version).uid(if random.bool() { "u" } else { "v" });
            if version % 500 == 0 {
                live.retain(|_, _| random.bool());
                replace(&informer, live.values().cloned().collect());
            } else if random.u8(0..3) == 0 {
                live.remove(&name);
                apply(&informer, vec![Delta::Delete(changed)]);
            } else {
                live.insert(name, changed.clone());
                apply(&informer, vec![changed.put()]);
            }
        }
        is_done.store(true, Ordering::SeqCst);
        for subscriber in subscribers {
            assert_eq!(subscriber.join().expect("no assertion fails"), live);
        }
    });
}

fn informer_without_runtime() -> (Informer<Pod>, Arc<Script>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let _entered = runtime.enter();
    informer(&[])
}

#[tokio::test]
async fn trap_27_synced_comes_after_the_last_initial_object() {
    let (informer, _) = informer(&[]);
    replace(
        &informer,
        (0..100).map(|n| pod(&format!("p{n}"), 1)).collect(),
    );
    let count = Arc::new(AtomicUsize::new(0));
    let mut handler = informer.on_event({
        let count = Arc::clone(&count);
        move |event| {
            let count = Arc::clone(&count);
            async move {
                tokio::task::yield_now().await;
                if let Event::Added { initial: true, .. } = event {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    });
    assert!(handler.synced().await);
    assert_eq!(count.load(Ordering::SeqCst), 100);
}

#[tokio::test]
async fn trap_28_a_subscriber_is_woken_after_an_object_came_and_went() {
    let (informer, _) = informer(&[]);
    replace(&informer, Vec::new());
    let mut subscription = informer.subscribe();
    assert_eq!(ready(&mut subscription), "synced");
    let reading = tokio::spawn(async move { subscription.next().await });
    tokio::task::yield_now().await;
    // The object is gone when the subscriber looks.
    apply(
        &informer,
        vec![pod("a", 1).put(), Delta::Delete(pod("a", 2))],
    );
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
    assert!(!reading.is_finished());
    apply(&informer, vec![pod("b", 3).put()]);
    let event = reading.await.expect("no panic").expect("an event");
    assert_eq!(text(&event), "+b@3");
}

#[tokio::test]
async fn a_handler_that_panics_is_called_for_the_next_event() {
    let (informer, _) = informer(&[]);
    let (sender, mut events) = mpsc::unbounded_channel();
    let _handler = informer.on_event(move |event| {
        let sender = sender.clone();
        async move {
            sender.send(text(&event)).expect("the test reads");
            assert!(!text(&event).starts_with("+a"), "of the handler");
        }
    });
    replace(&informer, vec![pod("a", 1), pod("b", 1)]);
    assert_eq!(events.recv().await.as_deref(), Some("+a@1*"));
    assert_eq!(events.recv().await.as_deref(), Some("+b@1*"));
}

#[tokio::test]
async fn a_handler_that_is_dropped_is_not_called_any_more() {
    let (informer, _) = informer(&[]);
    let (sender, mut events) = mpsc::unbounded_channel();
    let handler = informer.on_event(move |event| {
        let _ = sender.send(text(&event));
        async {}
    });
    replace(&informer, vec![pod("a", 1)]);
    assert_eq!(events.recv().await.as_deref(), Some("+a@1*"));
    assert_eq!(events.recv().await.as_deref(), Some("synced"));
    apply(&informer, vec![pod("a", 2).put()]);
    drop(handler);
    apply(&informer, vec![pod("a", 3).put()]);
    // The task ends, and with it the sender.
    assert_eq!(events.recv().await, None);
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn trap_35_no_handler_is_called_after_the_shutdown_and_no_task_remains() {
    let (informer, script) = informer(&["+a@1 +b@2 end@5 wait=1 ~a@6"]);
    let calls = Arc::new(AtomicUsize::new(0));
    let is_inside = Arc::new(AtomicBool::new(false));
    let _slow = informer.on_event({
        let (calls, is_inside) = (Arc::clone(&calls), Arc::clone(&is_inside));
        move |_| {
            let (calls, is_inside) = (Arc::clone(&calls), Arc::clone(&is_inside));
            async move {
                is_inside.store(true, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                calls.fetch_add(1, Ordering::SeqCst);
                is_inside.store(false, Ordering::SeqCst);
            }
        }
    });
    let _stuck = informer.on_event(|_| pending());
    informer.start();
    informer
        .wait_for_sync(Duration::from_secs(5))
        .await
        .expect("synced");
    informer.shutdown().await;
    // Both objects and the mark, which were there when the shutdown began.
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert!(!is_inside.load(Ordering::SeqCst));
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    assert_eq!(script.requests.lock().len(), 1);

    let error = informer.wait_for_sync(Duration::from_secs(5)).await;
    assert_eq!(error, Ok(()), "the state is complete, and remains readable");
    assert_eq!(informer.lister().len(), 2);
    informer.start();
    informer.shutdown().await;
    assert_eq!(script.requests.lock().len(), 1);
    assert_eq!(
        informer
            .subscribe()
            .next()
            .await
            .map(|event| text(&event))
            .as_deref(),
        Some("+a@1*")
    );
}

#[tokio::test(start_paused = true)]
async fn trap_35_every_shutdown_waits_for_the_handlers() {
    let (informer, _) = informer(&["+a@1 end@5"]);
    let ended = Arc::new(AtomicUsize::new(0));
    let handlers: Vec<_> = (1..4)
        .map(|seconds| {
            let ended = Arc::clone(&ended);
            informer.on_event(move |_| {
                let ended = Arc::clone(&ended);
                async move {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    informer.start();
    informer
        .wait_for_sync(Duration::from_secs(5))
        .await
        .expect("synced");
    tokio::task::yield_now().await;
    // One is cancelled when some handlers have ended; of two others, neither ends before all handlers have.
    let cancelled = timeout(Duration::from_millis(2500), informer.shutdown()).await;
    assert!(cancelled.is_err());
    let other = tokio::spawn({
        let informer = informer.clone();
        async move { informer.shutdown().await }
    });
    informer.shutdown().await;
    assert_eq!(ended.load(Ordering::SeqCst), 6);
    other.await.expect("no panic");
    drop(handlers);
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn trap_36_the_life_of_an_informer_has_defined_results() {
    let limit = Duration::from_secs(5);
    // Not started.
    let (new, script) = informer(&["+a@1 end@5"]);
    let mut subscription = new.subscribe();
    let error = new.wait_for_sync(limit).await.unwrap_err();
    assert_eq!(error.to_string(), "the cache of pods was not started");
    drop(new);
    assert!(subscription.next().await.is_none());
    assert_eq!(script.requests.lock().len(), 0);

    // Started twice, and dropped.
    let (twice, script) = informer(&["+a@1 end@5", "+a@1 end@5"]);
    twice.start();
    twice.clone().start();
    twice.wait_for_sync(limit).await.expect("synced");
    assert_eq!(script.requests.lock().len(), 1);
    drop(twice);
    tokio::task::yield_now().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);

    // Shut down before it is synced, while a task waits for that.
    let (stopped, _) = informer(&[]);
    stopped.start();
    let waiting = tokio::spawn({
        let stopped = stopped.clone();
        async move { stopped.wait_for_sync(limit).await }
    });
    tokio::task::yield_now().await;
    stopped.shutdown().await;
    let error = waiting.await.expect("no panic").unwrap_err();
    assert_eq!(error.to_string(), "the cache of pods was shut down");

    // A server that refuses.
    let (refused, _) = informer(&["403", "403", "403", "403", "403", "403", "403", "403"]);
    refused.start();
    let error = refused.wait_for_sync(limit).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cache of pods has no complete state after 5s: 403"
    );
    assert!(matches!(refused.state(), CacheState::Degraded { .. }));
}

#[tokio::test(start_paused = true)]
async fn trap_35_handlers_that_are_added_during_a_shutdown_end_with_it() {
    let (informer, _) = informer(&["+a@1 end@5"]);
    let calls = Arc::new(AtomicUsize::new(0));
    let added = Arc::new(Mutex::new(Vec::new()));
    // The first one adds two more when the shutdown waits for it: one that ends, and one that does not.
    let _first = informer.on_event({
        let (informer, calls, added) = (informer.clone(), Arc::clone(&calls), Arc::clone(&added));
        move |_| {
            let (informer, calls, added) =
                (informer.clone(), Arc::clone(&calls), Arc::clone(&added));
            async move {
                tokio::time::sleep(Duration::from_secs(3)).await;
                let counting = informer.on_event({
                    move |_| {
                        let calls = Arc::clone(&calls);
                        async move {
                            tokio::time::sleep(Duration::from_secs(3)).await;
                            calls.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                });
                let stuck = informer.on_event(|_| pending());
                let mut added = added.lock();
                added.extend([counting, stuck]);
            }
        }
    });
    informer.start();
    informer
        .wait_for_sync(Duration::from_secs(1))
        .await
        .expect("synced");
    informer.shutdown().await;
    let before = calls.load(Ordering::SeqCst);
    assert!(before >= 2, "{before} calls of the handler that was added");
    // The handlers keep the informer alive, and are not the tasks.
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);

    // After the shutdown a handler is never called, and says so.
    let late = Arc::clone(&calls);
    let mut handler = informer.on_event(move |_| {
        late.fetch_add(100, Ordering::SeqCst);
        async {}
    });
    assert!(!handler.synced().await);
    assert_eq!(calls.load(Ordering::SeqCst), before);
    added.lock().clear();
}

#[tokio::test(start_paused = true)]
async fn metrics_tell_what_an_informer_does() {
    let (informer, _) = informer(&[
        "+a@1 +b@2 end@5 wait=2 ~a@6 wait=2 eof",
        "wait=2 410",
        "+a@6 end@9 wait=30 b@10",
    ]);
    assert_eq!(informer.metrics().update_age, None);
    let _named = informer.subscribe().named("audit \"log\"");
    let _other = informer.subscribe();
    let registry = Registry::new();
    informer.register_metrics(&registry);
    informer.start();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let metrics = informer.metrics();
    assert_eq!(
        (
            metrics.objects,
            metrics.lists,
            metrics.watches,
            metrics.failures
        ),
        (1, 2, 3, 0)
    );
    let age = metrics.update_age.expect("it is synced").as_secs_f64();
    assert!((13.5..14.5).contains(&age), "{age}");
    tokio::time::sleep(Duration::from_secs(20)).await;
    // A bookmark is a sign of life.
    let age = informer.metrics().update_age.expect("it is synced");
    assert!(age < Duration::from_secs(7), "{age:?}");
    let text = registry.text();
    for line in [
        "apiloom_informer_objects{name=\"pods\"} 1",
        "apiloom_informer_lists_total{name=\"pods\"} 2",
        "apiloom_informer_watches_total{name=\"pods\"} 3",
        "apiloom_informer_failures_total{name=\"pods\"} 0",
        "apiloom_informer_subscriber_waiting{name=\"pods\",subscriber=\"audit \\\"log\\\"\"} 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    informer.shutdown().await;
    drop((informer, _named, _other));
    assert_eq!(registry.text(), "", "nothing is kept");
}

#[tokio::test(start_paused = true)]
async fn an_informer_resumes_from_a_saved_state() {
    let resumed = |answers: &[&str]| {
        let script = Script::new(answers.iter().map(|answer| (*answer).to_owned()));
        let version = ResourceVersion::new("5").expect("a version");
        let objects = [pod("a", 1), pod("b", 2)];
        let informer = Informer::builder(Arc::clone(&script)).resume_from(objects, version);
        (informer.build(), script)
    };
    let texts = |script: &Script| script.texts();

    let (informer, script) = resumed(&["wait=1 ~a@6 wait=2 -b@7"]);
    let mut subscription = informer.subscribe();
    informer.start();
    informer
        .wait_for_sync(Duration::from_secs(1))
        .await
        .expect("the saved state is complete");
    assert_eq!(ready(&mut subscription), "+a@1* +b@2* synced");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(ready(&mut subscription), "~a@1>6 -b@7");
    assert_eq!(texts(&script), ["watch rv=5"]);
    assert!(matches!(informer.state(), CacheState::Live { .. }));
    assert_eq!(informer.metrics().lists, 0);

    // The version is too old: subscribers see the differences.
    let (informer, script) = resumed(&["410", "+a@1 +c@8 end@9"]);
    let mut subscription = informer.subscribe();
    informer.start();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(ready(&mut subscription), "+a@1* synced +c@8");
    assert_eq!(texts(&script), ["watch rv=5", "stream rv=5"]);

    // Or of another history: it is not known yet, and is given up.
    let (informer, script) = resumed(&["large", "+a@1 end@3"]);
    informer.start();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(texts(&script), ["watch rv=5", "stream rv="]);
    assert_eq!(informer.lister().len(), 1);

    // The server is not there: the saved state can be read.
    let (informer, _) = resumed(&["break", "break", "break"]);
    informer.start();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(informer.lister().len(), 2);
    assert!(matches!(informer.state(), CacheState::Degraded { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_test_waits_until_a_cache_shows_what_the_server_has() {
    let limit = Duration::from_secs(30);
    let (informer, script) = informer(&[
        "+a@1 end@5 wait=10 ~a@8 -b@9",
        "500",
        "a@8 rv=9 continue=c1",
        "rv=9",
        "a@8 c@10 rv=10",
        "break",
    ]);
    informer.start();
    informer.wait_for_sync(limit).await.expect("synced");
    let start = tokio::time::Instant::now();
    informer.wait_for_server(limit).await.expect("it is shown");
    assert!(start.elapsed() >= Duration::from_secs(9));
    let error = informer.wait_for_server(limit).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cache of pods did not show what the server had within 30s"
    );
    let first = &script.texts()[1..4];
    let pages = "list rv= limit=500";
    assert_eq!(first, [pages, pages, "list continue=c1 limit=500"]);
}
