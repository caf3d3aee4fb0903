//! Tests of controllers with scripted sources and paused time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use apiloom_meta::GroupResource;

use super::super::guard::CacheVersion;
use super::super::queue::{Priority, WorkQueueConfig};
use super::super::source::{EventHandler, EventSource, EventSubscription};
use crate::cache::{Event, Observation, ResourceVersion};

use super::{Action, Context, Controller, ReconcileError, Request};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// An object with an owner.
type Object = (&'static str, Option<&'static str>);

/// A source that shows the changes that a test tells it.
#[derive(Clone, Default)]
struct Script(Arc<Subscribed>);

#[derive(Default)]
struct Subscribed {
    handler: Mutex<Option<EventHandler<Object>>>,
    is_synced: AtomicBool,
    calls: AtomicUsize,
    resyncs: AtomicUsize,
}

impl Script {
    fn synced() -> Self {
        let script = Self::default();
        script.0.is_synced.store(true, Ordering::SeqCst);
        script
    }

    fn show(&self, event: Event<Object>) {
        if let Some(handler) = &*self.0.handler.lock().unwrap() {
            self.0.calls.fetch_add(1, Ordering::SeqCst);
            handler(event);
        }
    }

    fn add(&self, object: Object, initial: bool) {
        let object = Arc::new(object);
        self.show(Event::Added { object, initial });
    }
}

impl EventSource for Script {
    type Object = Object;

    fn subscribe(&self, handler: EventHandler<Object>) -> Box<dyn EventSubscription> {
        if self.0.is_synced.load(Ordering::SeqCst) {
            handler(Event::Synced);
        }
        *self.0.handler.lock().unwrap() = Some(handler);
        Box::new(self.clone())
    }
}

impl EventSubscription for Script {
    fn resync(&self) {
        self.0.resyncs.fetch_add(1, Ordering::SeqCst);
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        async { *self.0.handler.lock().unwrap() = None }.boxed()
    }
}

/// What was reconciled, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Request<&'static str>>>>);

impl Log {
    fn push(&self, request: Request<&'static str>) {
        self.0.lock().unwrap().push(request);
    }

    fn keys(&self) -> Vec<&'static str> {
        let log = self.0.lock().unwrap();
        log.iter().map(|request| request.key).collect()
    }

    /// A reconcile function that only writes the log.
    fn done(
        &self,
    ) -> impl Fn(
        Request<&'static str>,
        Context,
    ) -> std::future::Ready<Result<Action, ReconcileError>>
    + Send
    + Sync
    + use<> {
        let log = self.clone();
        move |request, _| {
            log.push(request);
            std::future::ready(Ok(Action::Done))
        }
    }
}

fn controller() -> Controller<&'static str> {
    Controller::new("test").workers(1)
}

#[tokio::test(start_paused = true)]
async fn all_sources_show_their_objects_again_when_one_lags() {
    let (first, second) = (Script::synced(), Script::synced());
    let running = controller()
        .watch(&first, |object| [object.0])
        .watch_with(&second, |event, _| panic!("{event:?} is not mapped"))
        .start(Log::default().done());
    let resyncs = || [&first, &second].map(|script| script.0.resyncs.load(Ordering::SeqCst));
    sleep(SECOND).await;
    assert_eq!(resyncs(), [0, 0]);
    second.show(Event::Lagged { skipped: 1 });
    sleep(SECOND).await;
    assert_eq!(resyncs(), [1, 1]);
    // It lags more while the objects are shown: the next time is later, and comes.
    second.show(Event::Lagged { skipped: 5 });
    first.show(Event::Lagged { skipped: 5 });
    sleep(SECOND).await;
    assert_eq!(resyncs(), [1, 1]);
    sleep(60 * SECOND).await;
    assert_eq!(resyncs(), [2, 2]);
    running.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn keys_wait_until_all_sources_are_synced() {
    let (first, second, log) = (Script::synced(), Script::default(), Log::default());
    let running = controller()
        .watch(&first, |object| [object.0])
        .watch(&second, |object| [object.0])
        .start(log.done());
    first.add(("a", None), true);
    first.add(("a", None), false);
    sleep(60 * SECOND).await;
    assert_eq!(log.keys(), [""; 0]);
    second.add(("b", None), true);
    second.show(Event::Synced);
    running.wait_idle().await;
    assert_eq!(log.keys(), ["a", "b"]);
    let priorities: Vec<_> = log.0.lock().unwrap().iter().map(|r| r.priority).collect();
    assert_eq!(priorities, [Priority::Normal, Priority::Low]);
    running.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_of_an_owned_object_reconciles_its_old_and_its_new_owner() {
    let (source, log) = (Script::synced(), Log::default());
    let running = controller()
        .watch(&source, |object| object.1)
        .start(log.done());
    source.add(("pod", Some("a")), false);
    source.add(("orphan", None), false);
    running.wait_idle().await;
    let (old, new) = (Arc::new(("pod", Some("a"))), Arc::new(("pod", Some("b"))));
    let last = Arc::clone(&new);
    source.show(Event::Updated { old, new });
    running.wait_idle().await;
    let observed = Observation::Seen;
    source.show(Event::Deleted { last, observed });
    running.wait_idle().await;
    assert_eq!(log.keys(), ["a", "a", "b", "b"]);
    running.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_mapping_may_leave_out_changes() {
    let (source, log) = (Script::synced(), Log::default());
    let running = controller()
        .watch_with(&source, |event, enqueue| {
            if let Event::Added {
                object,
                initial: false,
            } = event
            {
                enqueue.add_with(object.0, Priority::High, SECOND);
            }
        })
        .start(log.done());
    source.add(("old", None), true);
    let object = Arc::new(("old", None));
    source.show(Event::Resync { object });
    source.add(("new", None), false);
    running.wait_idle().await;
    assert_eq!(log.keys(), ["new"]);
    assert_eq!(log.0.lock().unwrap()[0].priority, Priority::High);
    running.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn errors_and_panics_back_off_and_terminal_errors_do_not() {
    let log = Log::default();
    let running = controller().start({
        let log = log.clone();
        move |request, _| {
            log.push(request.clone());
            async move {
                match (request.key, request.failures) {
                    ("error" | "panic", 3) => Ok(Action::Done),
                    ("error", _) => Err("not yet".into()),
                    ("panic", _) => panic!("not yet"),
                    _ => Err(ReconcileError::from("never").terminal()),
                }
            }
        }
    });
    let start = Instant::now();
    for key in ["error", "panic", "terminal"] {
        running.queue().add(key);
    }
    running.wait_idle().await;
    // 5 + 10 + 20 ms.
    assert_eq!(start.elapsed(), 35 * MS);
    let mut calls = BTreeMap::new();
    for key in log.keys() {
        *calls.entry(key).or_insert(0) += 1;
    }
    assert_eq!(
        calls,
        BTreeMap::from([("error", 4), ("panic", 4), ("terminal", 1)])
    );
    let metrics = running.metrics();
    let counts = (metrics.successes, metrics.errors, metrics.terminal_errors);
    assert_eq!(counts, (2, 7, 1));
    assert_eq!((metrics.panics, metrics.active, metrics.workers), (3, 0, 1));
    assert_eq!(metrics.duration.count(), 9);
    let registry = crate::metrics::Registry::new();
    running.register_metrics(&registry);
    let text = registry.text();
    for line in [
        "controller_runtime_reconcile_total{controller=\"test\",result=\"success\"} 2",
        "controller_runtime_reconcile_errors_total{controller=\"test\"} 7",
        "controller_runtime_reconcile_panics_total{controller=\"test\"} 3",
        "controller_runtime_terminal_reconcile_errors_total{controller=\"test\"} 1",
        "controller_runtime_max_concurrent_reconciles{controller=\"test\"} 1",
        "controller_runtime_reconcile_time_seconds_count{controller=\"test\"} 9",
        "workqueue_retries_total{name=\"test\"} 6",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    running.shutdown().await;
    assert_eq!(registry.text(), "");
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_the_first_await_is_caught() {
    let is_first = AtomicBool::new(true);
    let running = controller().start(move |_, _| {
        assert!(!is_first.swap(false, Ordering::SeqCst), "the first call");
        async { Ok(Action::Done) }
    });
    running.queue().add("a");
    running.wait_idle().await;
    assert_eq!(
        (running.metrics().panics, running.metrics().successes),
        (1, 1)
    );
    running.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_is_reconciled_again_after_the_duration_that_it_asked_for() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let running = controller().start({
        let times = Arc::clone(&times);
        move |_, _| {
            times.lock().unwrap().push(start.elapsed());
            async { Ok(Action::RequeueAfter(60 * SECOND)) }
        }
    });
    running.queue().add("a");
    running.wait_idle().await;
    sleep(150 * SECOND).await;
    assert_eq!(
        *times.lock().unwrap(),
        [0, 60, 120].map(Duration::from_secs)
    );
    assert_eq!(running.metrics().requeues, 3);
    running.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_told_to_end_and_then_dropped() {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let running = Controller::new("test")
        .workers(2)
        .timeout(10 * SECOND)
        .grace(SECOND)
        .start({
            let ends = Arc::clone(&ends);
            move |request: Request<&str>, context: Context| {
                let ends = Arc::clone(&ends);
                async move {
                    if request.failures > 0 {
                        ends.lock().unwrap().push(start.elapsed());
                        return Ok(Action::Done);
                    }
                    if request.key == "stubborn" {
                        std::future::pending::<()>().await;
                    }
                    context.cancelled().await;
                    Err("it took too long".into())
                }
            }
        });
    running.queue().add("obedient");
    running.queue().add("stubborn");
    running.wait_idle().await;
    assert_eq!(*ends.lock().unwrap(), [10_005 * MS, 11_005 * MS]);
    assert_eq!(running.metrics().errors, 2);
    running.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn workers_work_at_the_same_time() {
    let running = Controller::new("test")
        .workers(3)
        .start(async |_: Request<usize>, _| {
            sleep(SECOND).await;
            Ok(Action::Done)
        });
    let start = Instant::now();
    (0..9).for_each(|key| running.queue().add(key));
    running.wait_idle().await;
    assert_eq!(start.elapsed(), 3 * SECOND);
    running.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn trap_35_after_shutdown_no_handler_and_no_call_runs_and_no_task_is_left() {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    let (source, unsynced) = (Script::synced(), Script::default());
    let (log, entered) = (Log::default(), Arc::new(Notify::new()));
    let running = controller().watch(&source, |object| [object.0]).start({
        let (log, entered) = (log.clone(), Arc::clone(&entered));
        move |request, context| {
            let (log, entered) = (log.clone(), Arc::clone(&entered));
            async move {
                entered.notify_one();
                context.cancelled().await;
                sleep(SECOND).await;
                log.push(request);
                Err("to be retried".into())
            }
        }
    });
    source.add(("a", None), false);
    source.add(("b", None), false);
    entered.notified().await;
    let queue = running.queue().clone();
    running.shutdown().await;
    // The call that went on has ended in its own time, and the other key was dropped.
    assert_eq!(log.keys(), ["a"]);
    let calls = source.0.calls.load(Ordering::SeqCst);
    source.add(("c", None), false);
    queue.add("d");
    sleep(60 * SECOND).await;
    assert_eq!(source.0.calls.load(Ordering::SeqCst), calls);
    assert_eq!(log.keys(), ["a"]);
    assert_eq!(tasks(), before);

    // The same while a source is not synced, and by dropping it.
    let running = controller()
        .watch(&unsynced, |object| [object.0])
        .start(log.done());
    tokio::task::yield_now().await;
    running.shutdown().await;
    assert_eq!(tasks(), before);
    drop(
        controller()
            .watch(&unsynced, |object| [object.0])
            .start(log.done()),
    );
    sleep(SECOND).await;
    assert_eq!(tasks(), before);
}

/// The version that a cache shows.
#[derive(Clone)]
struct Shown(Arc<Mutex<&'static str>>);

impl CacheVersion for Shown {
    fn resource_version(&self) -> Option<ResourceVersion> {
        ResourceVersion::new(*self.0.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn trap_39_a_key_is_not_reconciled_from_a_cache_that_is_older_than_its_write() {
    let pods = GroupResource::new("", "pods");
    let (source, shown) = (Script::synced(), Shown(Arc::new(Mutex::new("9"))));
    let log = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let running = controller()
        .watch(&source, |object| [object.0])
        .cache(pods.clone(), shown.clone())
        .start({
            let (log, shown) = (Arc::clone(&log), shown.clone());
            move |request: Request<&'static str>, context: Context| {
                let cached = *shown.0.lock().unwrap();
                let number = log.lock().unwrap().len();
                log.lock()
                    .unwrap()
                    .push((request.key, cached, start.elapsed()));
                match (request.key, number) {
                    ("a", 0) => context.writes().record_version(&pods, "10"),
                    ("a", _) => {
                        let version = ResourceVersion::new("20").unwrap();
                        return std::future::ready(Ok(if number < 3 {
                            Action::RequeueWhenSeen(version)
                        } else {
                            Action::Done
                        }));
                    }
                    _ => {}
                }
                std::future::ready(Ok(Action::Done))
            }
        });
    running.queue().add("a");
    sleep(MS).await;
    // A trigger between the write and its change is put off; other keys go on.
    source.add(("a", None), false);
    source.add(("b", None), false);
    sleep(450 * MS).await;
    assert_eq!(log.lock().unwrap().len(), 2);
    // The change that shows the write is reconciled without further delay, and asks for a version that never comes.
    *shown.0.lock().unwrap() = "10";
    source.add(("a", None), false);
    running.wait_idle().await;
    source.add(("c", None), false);
    running.wait_idle().await;
    sleep(20 * SECOND).await;
    let zero = Duration::ZERO;
    assert_eq!(
        *log.lock().unwrap(),
        [
            ("a", "9", zero),
            ("b", "9", MS),
            ("a", "10", 451 * MS),
            ("a", "10", 10_451 * MS),
            ("c", "10", 10_451 * MS),
        ]
    );
    running.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn run_ends_with_its_signal() {
    let (cancel, log) = (CancellationToken::new(), Log::default());
    let source = Script::synced();
    let controller = controller()
        .queue_config(WorkQueueConfig::default())
        .watch(&source, |object| [object.0]);
    let run = controller.run(&cancel, log.done());
    let use_it = async {
        sleep(SECOND).await;
        source.add(("a", None), false);
        sleep(SECOND).await;
        cancel.cancel();
    };
    tokio::join!(run, use_it);
    assert_eq!(log.keys(), ["a"]);
}

#[test]
fn an_error_shows_its_causes() {
    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("no number")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    fn fail() -> Result<u8, ReconcileError> {
        Ok("x".parse().map_err(Outer)?)
    }
    let error = fail().unwrap_err();
    assert_eq!(
        error.to_string(),
        "no number: invalid digit found in string"
    );
    assert!(!error.is_terminal());
}
