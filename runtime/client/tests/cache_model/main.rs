//! Informers against a server with faults: connections that break, expired versions, replicas that are behind, restarts,
//! half lines, objects that cannot be decoded. A failed schedule prints its seed; `CACHE_SEED=7` runs one again, and
//! `CACHE_SCHEDULES=100000` runs more of them.

mod feed;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use apiloom_client::cache::{CacheState, Event, Informer, InformerFactory, Lister, Subscription};
use apiloom_client::{ApiObject, ApiResource, Client, HasMetadata, Kind};
use apiloom_meta::ObjectMeta;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use world::{Connection, Fault, State, World};

/// Number of schedules of a usual run.
const SCHEDULES: u64 = 2000;
/// Most requests of one schedule, which lasts about an hour: without a backoff there are thousands.
const REQUESTS: usize = 600;
/// Time after the last fault in which everything must be right again. A watch that is silent is noticed after ten and a half
/// minutes, and a request without a response after five.
const RECOVERY: Duration = Duration::from_secs(40 * 60);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Config {
    metadata: ObjectMeta,
    value: u64,
}

impl HasMetadata for Config {
    fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }
    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
    fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }
    fn resource_version(&self) -> &str {
        let version = &self.metadata.resource_version;
        version.as_deref().unwrap_or_default()
    }
    fn label(&self, _: &str) -> Option<&str> {
        None
    }
    fn owner_uids(&self) -> Vec<&str> {
        Vec::new()
    }
}

impl apiloom_client::verbs::List for Config {}
impl apiloom_client::verbs::Watch for Config {}
impl apiloom_client::NamespacedKind for Config {}

impl ApiObject for Config {}

impl Kind for Config {
    fn api_resource() -> ApiResource {
        ApiResource::new("ex.io", "v1", "Config", "configs")
    }
}

/// An object as the server stored it.
fn state(config: &Config) -> State {
    assert_eq!(
        config.metadata.managed_fields,
        [],
        "fields that are left out"
    );
    State {
        name: config.name().to_owned(),
        uid: config.uid().parse().expect("a uid of the server"),
        version: config
            .resource_version()
            .parse()
            .expect("a version of the server"),
        value: config.value,
        is_bad: false,
    }
}

type Objects = BTreeMap<String, State>;

/// What a cache shows at a version: all objects that can be decoded.
fn expected(world: &World, version: u64) -> Objects {
    let mut objects = world.data.lock().at(version);
    objects.retain(|_, state| !state.is_bad);
    objects
}

/// Looks at a cache from time to time.
#[derive(Default)]
struct Observer {
    newest: u64,
    expected: Objects,
}

impl Observer {
    /// The cache is one state of the server, and not an older one than before.
    fn check(&mut self, world: &World, lister: &Lister<Config>) {
        let (objects, version) = lister.snapshot();
        let Some(version) = version else {
            assert!(objects.is_empty() && !lister.is_synced());
            return;
        };
        let version: u64 = version.as_str().parse().expect("a version of the server");
        assert!(
            version >= self.newest,
            "back from {} to {version}",
            self.newest
        );
        if version > self.newest {
            self.newest = version;
            self.expected = expected(world, version);
        }
        let count = objects.len();
        let shown: Objects = objects
            .iter()
            .map(|object| (object.name().to_owned(), state(object)))
            .collect();
        assert_eq!(shown.len(), count, "a key twice");
        assert_eq!(shown, self.expected, "at {version}");
    }
}

/// Reads events and checks that each follows from those before.
struct Follower {
    subscription: Subscription<Config>,
    /// Whether it may miss events although it asked for all.
    may_lag: bool,
    known: Objects,
    is_synced: bool,
}

impl Follower {
    fn new(informer: &Informer<Config>) -> Self {
        Self {
            subscription: informer.subscribe(),
            may_lag: false,
            known: Objects::new(),
            is_synced: false,
        }
    }

    /// One that wants every event, and gets so many.
    fn of_every_event(informer: &Informer<Config>, bound: usize) -> Self {
        let follower = Self::new(informer);
        Self {
            subscription: follower.subscription.every_event(bound),
            // There are fewer changes in a schedule.
            may_lag: bound < 10_000,
            ..follower
        }
    }

    fn follow(&mut self, event: Event<Config>) {
        match event {
            Event::Added { object, initial } => {
                assert_eq!(initial, !self.is_synced, "initial {initial}");
                let before = self.known.insert(object.name().to_owned(), state(&object));
                assert_eq!(before, None, "added twice");
            }
            Event::Updated { old, new } => {
                assert_eq!(old.uid(), new.uid(), "another object");
                let before = self.known.insert(new.name().to_owned(), state(&new));
                assert_eq!(before, Some(state(&old)), "an update of another state");
            }
            Event::Deleted { last, .. } => {
                let before = self.known.remove(last.name()).expect("deleted twice");
                assert_eq!(before.uid.to_string(), last.uid(), "another object");
            }
            Event::Resync { object } => {
                assert_eq!(self.known.get(object.name()), Some(&state(&object)));
            }
            Event::Synced => {
                assert!(!self.is_synced, "synced twice");
                self.is_synced = true;
            }
            Event::Lagged { skipped } => assert!(self.may_lag && skipped > 0, "{skipped} skipped"),
        }
    }

    /// Follows with pauses until the informer is shut down.
    async fn run(mut self, world: Arc<World>, longest_pause_ms: u64) -> Objects {
        while let Some(event) = self.subscription.next().await {
            self.follow(event);
            world.pause(longest_pause_ms).await;
        }
        assert!(self.is_synced);
        self.known
    }
}

async fn change(world: Arc<World>) {
    for _ in 0..world.pick(20..120) {
        world.pause(20_000).await;
        match world.pick(0..20) {
            0 => world.compact(),
            1 => world.restart(),
            // Several changes at once, mostly of the same objects.
            2..=5 => (0..world.pick(2..20)).for_each(|_| world.write()),
            _ => world.write(),
        }
    }
}

async fn schedule(seed: u64) {
    fastrand::seed(seed);
    let world = World::new(seed);
    let factory = InformerFactory::new(&Client::new(Connection(Arc::clone(&world))));
    let informer = factory.namespace("ns").informer::<Config>();
    let first = tokio::spawn(Follower::new(&informer).run(Arc::clone(&world), 0));
    let bound = [4, 10_000][usize::from(world.pick(0..2) == 0)];
    let every = Follower::of_every_event(&informer, bound);
    let every = tokio::spawn(every.run(Arc::clone(&world), 60_000));
    informer.start();
    let changing = tokio::spawn(change(Arc::clone(&world)));

    let lister = informer.lister();
    let mut observer = Observer::default();
    let mut late = vec![every];
    while !changing.is_finished() {
        world.pause(5_000).await;
        observer.check(&world, &lister);
        if late.len() < 4 && world.pick(0..40) == 0 {
            let follower = Follower::new(&informer);
            late.push(tokio::spawn(follower.run(Arc::clone(&world), 30_000)));
        }
    }
    changing.await.expect("changes are made");
    world.end_faults();
    let end = Instant::now() + RECOVERY;
    while Instant::now() < end {
        sleep(Duration::from_secs(60)).await;
        observer.check(&world, &lister);
    }

    let version = world.data.lock().version;
    let expected = expected(&world, version);
    assert_eq!(observer.newest, version, "the cache is not up to date");
    assert!(
        matches!(informer.state(), CacheState::Live { .. }),
        "{:?}",
        informer.state()
    );
    let requests = world.requests.lock().len();
    assert!(requests <= REQUESTS, "{requests} requests");
    factory.shutdown().await;
    assert_eq!(first.await.expect("the events are right"), expected);
    for late in late {
        assert_eq!(late.await.expect("the events are right"), expected);
    }
    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    assert_eq!(tasks, 0, "tasks remain");
}

fn run(seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(schedule(seed))));
    assert!(
        result.is_ok(),
        "the schedule with CACHE_SEED={seed} failed; its error is above"
    );
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is not a number: {text:?}")),
    )
}

#[test]
fn caches_follow_a_server_with_faults() {
    if let Some(seed) = number("CACHE_SEED") {
        return run(seed);
    }
    let count = number("CACHE_SCHEDULES").unwrap_or(SCHEDULES);
    let first = fastrand::u64(..u64::MAX / 2);
    println!("schedules {first} to {}", first + count);
    let next = AtomicU64::new(first);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    run(seed);
                }
            });
        }
    });
    let faults = Fault::ALL.map(|fault| (fault, fault.occurred()));
    println!("faults: {faults:?}");
    // A run with few schedules may not have all of them.
    let enough = if count < SCHEDULES { 0 } else { 100 };
    for (fault, occurred) in faults {
        assert!(occurred >= enough, "{fault:?} occurred {occurred} times");
    }
}
