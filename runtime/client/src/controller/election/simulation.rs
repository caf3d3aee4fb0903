//! Elections over a network that delays, loses and duplicates nothing but answers late, with processes that stop for a
//! while: at no time two guards are open.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use futures_util::future::{BoxFuture, FutureExt as _};
use proptest::prelude::*;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::clock::Clocks;
use super::tests::Server;
use super::{ElectionConfig, LeaderElector, Leadership, Lease, LeaseError, LeaseStore};

const SECOND: Duration = Duration::from_secs(1);
const CANDIDATES: u64 = 3;
const DURATION: Duration = Duration::from_secs(400);
/// After this time there are no faults: someone must lead at the end.
const FAULTS: Duration = Duration::from_secs(300);

/// Random numbers from a seed, so that a failure can be repeated.
#[derive(Clone)]
struct Random(Arc<AtomicU64>);

impl Random {
    fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }

    /// A number below a bound (splitmix64).
    fn below(&self, bound: u64) -> u64 {
        let state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mut mixed = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&self, number: u64) -> bool {
        self.below(number) == 0
    }

    /// Mostly short, sometimes longer than a lease.
    fn delay(&self) -> Duration {
        let most = match self.below(20) {
            0 => 25_000,
            1..4 => 4_000,
            _ => 100,
        };
        Duration::from_millis(self.below(most))
    }
}

/// The way of one candidate to the server.
struct Network {
    server: Server,
    random: Random,
    start: Instant,
}

impl Network {
    fn has_faults(&self) -> bool {
        self.start.elapsed() < FAULTS
    }

    /// Sends a request, which the server also executes if the caller does not wait for the answer any more.
    fn send<T: Send + 'static>(
        &self,
        execute: impl FnOnce(&Server) -> Result<T, LeaseError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, LeaseError>> {
        let (server, random) = (self.server.clone(), self.random.clone());
        let has_faults = self.has_faults();
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let mut wait = Duration::from_millis(random.below(50));
            if has_faults {
                wait = random.delay();
            }
            sleep(wait).await;
            if has_faults && random.one_in(10) {
                return;
            }
            let result = execute(&server);
            if has_faults {
                sleep(random.delay()).await;
                if random.one_in(10) {
                    return;
                }
            }
            // The candidate may have given up.
            let _ = answer.send(result);
        });
        async move {
            let lost = |_| LeaseError::Other("connection reset".into());
            answered.await.map_err(lost)?
        }
        .boxed()
    }
}

impl LeaseStore for Network {
    fn get(&self) -> BoxFuture<'_, Result<Option<Lease>, LeaseError>> {
        self.send(Server::read)
    }
    fn create(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        self.send(move |server| server.write_new(lease))
    }
    fn update(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        self.send(move |server| server.replace(lease))
    }
}

/// Polls a future, but not while its process is stopped, as by SIGSTOP.
async fn with_stops<T>(future: impl Future<Output = T>, stops: Vec<(Instant, Instant)>) -> T {
    let mut future = pin!(future);
    let mut end_of_stop = pin!(sleep(Duration::ZERO));
    poll_fn(|context| {
        let now = Instant::now();
        let mut stops = stops.iter();
        if let Some((_, end)) = stops.find(|(begin, end)| (*begin..*end).contains(&now)) {
            end_of_stop.as_mut().reset(*end);
            if end_of_stop.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        future.as_mut().poll(context)
    })
    .await
}

/// What the candidates did.
#[derive(Default)]
struct Observed {
    leaders: Mutex<Vec<(u64, Leadership)>>,
    terms: Mutex<Vec<(u64, i32)>>,
    both: Mutex<Vec<String>>,
}

impl Observed {
    fn open(&self) -> Vec<(u64, i32)> {
        let mut leaders = self.leaders.lock().unwrap();
        leaders.retain(|(_, leadership)| leadership.guard().check().is_ok());
        leaders.iter().map(|(id, of)| (*id, of.term())).collect()
    }

    fn check(&self) {
        let open = self.open();
        if open.len() > 1 {
            self.both.lock().unwrap().push(format!("{open:?}"));
        }
    }

    /// A guard opens only here, so two that are open at once are seen here at the latest.
    fn begin(&self, candidate: u64, leadership: &Leadership) {
        let mut terms = self.terms.lock().unwrap();
        terms.push((candidate, leadership.term()));
        drop(terms);
        let mut leaders = self.leaders.lock().unwrap();
        leaders.push((candidate, leadership.clone()));
        drop(leaders);
        self.check();
    }
}

async fn candidate(number: u64, server: Server, random: Random, observed: Arc<Observed>) {
    let start = Instant::now();
    // Clocks of the wall that are wrong by up to some hours, and stand still in tests.
    let skew = Duration::from_secs(random.below(20_000));
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) + skew;
    let clocks = Clocks::with_wall(move || wall + start.elapsed());
    let config = ElectionConfig {
        release: number != 0,
        ..ElectionConfig::default()
    };
    for life in 0.. {
        let network = Network {
            server: server.clone(),
            random: random.clone(),
            start,
        };
        let identity = format!("{number}-{life}");
        let store = Box::new(network);
        let elector = LeaderElector::with_clocks(store, identity, config, clocks.clone());
        let work = async |leadership: Leadership| {
            observed.begin(number, &leadership);
            let enough = if start.elapsed() < FAULTS {
                Duration::from_millis(random.below(60_000))
            } else {
                DURATION
            };
            tokio::select! {
                () = sleep(enough) => {}
                // Sometimes it goes on, and is dropped.
                () = leadership.cancel().cancelled(), if !random.one_in(3) => {}
            }
        };
        // Losing the lease is what is tested.
        let _ = elector
            .expect("valid")
            .run(&CancellationToken::new(), work)
            .await;
        sleep(Duration::from_millis(random.below(3_000))).await;
    }
}

/// Runs one schedule and returns the terms.
fn simulate(seed: u64) -> Result<Vec<(u64, i32)>, TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (server, random) = (Server::default(), Random::new(seed));
        let observed = Arc::new(Observed::default());
        let start = Instant::now();
        for number in 0..CANDIDATES {
            let stops = (0..8).map(|_| {
                let begin = start + Duration::from_millis(random.below(270_000));
                (begin, begin + Duration::from_millis(random.below(30_000)))
            });
            let stops = stops.collect();
            let run = candidate(
                number,
                server.clone(),
                random.clone(),
                Arc::clone(&observed),
            );
            tokio::spawn(with_stops(run, stops));
        }
        while start.elapsed() < DURATION {
            sleep_until(Instant::now() + SECOND / 4).await;
            observed.check();
        }
        let both = observed.both.lock().unwrap().clone();
        prop_assert!(both.is_empty(), "two may write at once: {both:?}");
        prop_assert!(!observed.open().is_empty(), "no leader without faults");
        let terms = observed.terms.lock().unwrap().clone();
        // A leader's term is greater than those of all before, or its own again.
        for pair in terms.windows(2) {
            let [(_, before), (_, after)] = pair else {
                continue;
            };
            prop_assert!(before < after, "terms went back: {terms:?}");
        }
        Ok(terms)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn trap_41_42_never_two_leaders_that_may_write_at_once(seed in any::<u64>()) {
        let terms = simulate(seed)?;
        // A schedule without changes of the leader would show nothing.
        prop_assert!(terms.len() > 3, "{terms:?}");
    }
}
