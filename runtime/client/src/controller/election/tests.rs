//! Tests of elections on a lease in memory, with paused time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use apiloom_meta::MicroTime;
use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::clock::Clocks;
use super::{
    ElectionConfig, ElectionConfigError, ElectionError, LeaderElector, Leadership, Lease,
    LeaseError, LeaseSpec, LeaseStore, NotLeader,
};

const SECOND: Duration = Duration::from_secs(1);

/// The lease as a server keeps it: writes need the version that was read.
#[derive(Clone, Default)]
pub(super) struct Server(Arc<Stored>);

#[derive(Default)]
struct Stored {
    lease: Mutex<Option<Lease>>,
    version: AtomicUsize,
    gets: AtomicUsize,
    is_down: AtomicBool,
    /// Creates are refused, as in a namespace that does not exist.
    is_refused: AtomicBool,
}

impl Server {
    pub(super) fn lease(&self) -> Option<Lease> {
        self.0.lease.lock().unwrap().clone()
    }

    fn store(&self, mut lease: Lease) -> Lease {
        let version = self.0.version.fetch_add(1, Ordering::SeqCst) + 1;
        lease.metadata.resource_version = Some(version.to_string());
        *self.0.lease.lock().unwrap() = Some(lease.clone());
        lease
    }

    /// Changes the lease as another program does.
    fn edit(&self, change: impl FnOnce(&mut Lease)) {
        let mut lease = self.lease().expect("a lease");
        change(&mut lease);
        self.store(lease);
    }

    fn check_up(&self) -> Result<(), LeaseError> {
        if self.0.is_down.load(Ordering::SeqCst) {
            return Err(LeaseError::Other("connection refused".into()));
        }
        Ok(())
    }

    pub(super) fn set_down(&self, is_down: bool) {
        self.0.is_down.store(is_down, Ordering::SeqCst);
    }

    pub(super) fn read(&self) -> Result<Option<Lease>, LeaseError> {
        self.check_up()?;
        self.0.gets.fetch_add(1, Ordering::SeqCst);
        Ok(self.lease())
    }

    pub(super) fn write_new(&self, lease: Lease) -> Result<Lease, LeaseError> {
        self.check_up()?;
        if self.0.is_refused.load(Ordering::SeqCst) {
            return Err(LeaseError::Refused("no such namespace".to_owned()));
        }
        match self.lease() {
            Some(_) => Err(LeaseError::Conflict),
            None => Ok(self.store(lease)),
        }
    }

    pub(super) fn replace(&self, lease: Lease) -> Result<Lease, LeaseError> {
        self.check_up()?;
        let stored = self.lease().map(|stored| stored.metadata.resource_version);
        if stored != Some(lease.metadata.resource_version.clone()) {
            return Err(LeaseError::Conflict);
        }
        Ok(self.store(lease))
    }
}

impl LeaseStore for Server {
    fn get(&self) -> BoxFuture<'_, Result<Option<Lease>, LeaseError>> {
        async { self.read() }.boxed()
    }
    fn create(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        async { self.write_new(lease) }.boxed()
    }
    fn update(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        async { self.replace(lease) }.boxed()
    }
}

/// A lease that a process wrote which is gone now.
fn held_by(holder: &str, seconds: i32) -> Lease {
    let lease = json!({
        "metadata": {"name": "a"},
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 3,
            "acquireTime": "2000-01-01T00:00:00.000000Z", "renewTime": "2000-01-01T00:00:00.000000Z",
        },
    });
    serde_json::from_value(lease).unwrap()
}

pub(super) fn elector(server: &Server, identity: &str) -> LeaderElector {
    LeaderElector::new(server.clone(), identity, ElectionConfig::default()).unwrap()
}

/// Runs a candidate until it leads; the rest of the run goes on in a task.
pub(super) async fn lead(elector: LeaderElector) -> (Leadership, Run) {
    let (send, receive) = tokio::sync::oneshot::channel();
    let cancel = CancellationToken::new();
    let task = tokio::spawn({
        let cancel = cancel.clone();
        async move {
            let work = |leadership: Leadership| async move {
                send.send(leadership.clone()).unwrap();
                leadership.cancel().cancelled().await;
            };
            elector.run(&cancel, work).await
        }
    });
    let leadership = receive.await.expect("it leads");
    (leadership, Run { cancel, task })
}

pub(super) struct Run {
    cancel: CancellationToken,
    pub(super) task: tokio::task::JoinHandle<Result<Option<()>, ElectionError>>,
}

/// Ends a run that leads.
pub(super) async fn stop(run: Run) {
    assert_eq!(run.stop().await, Ok(Some(())));
}

impl Run {
    async fn stop(self) -> Result<Option<()>, ElectionError> {
        self.cancel.cancel();
        self.task.await.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_renews_and_gives_the_lease_up_when_its_work_is_done() {
    let server = Server::default();
    let start = Instant::now();
    let (first, run) = lead(elector(&server, "a")).await;
    assert_eq!((start.elapsed(), first.term()), (Duration::ZERO, 0));
    sleep(60 * SECOND).await;
    first.guard().check().unwrap();
    // Renewals use the version of the last one: only the first attempt reads.
    assert_eq!(server.0.gets.load(Ordering::SeqCst), 1);
    let waiting = elector(&server, "b");
    let holder = waiting.holder();
    let next = tokio::spawn(lead(waiting));
    sleep(60 * SECOND).await;
    assert_eq!(holder.borrow().as_deref(), Some("a"));
    assert_eq!(run.stop().await, Ok(Some(())));
    assert_eq!(first.guard().check(), Err(NotLeader));
    let released = server.lease().unwrap().spec;
    assert_eq!(released.holder(), None);
    assert_eq!(released.lease_duration_seconds, Some(1));
    let (second, run) = timeout(5 * SECOND, next).await.unwrap().unwrap();
    assert_eq!(second.term(), 1);
    assert_eq!(server.lease().unwrap().spec.holder(), Some("b"));
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_metric_says_whether_this_process_leads() {
    let (server, registry) = (Server::default(), crate::metrics::Registry::new());
    let line = |value| format!("leader_election_master_status{{name=\"flunders\"}} {value}");
    let shows = |value| registry.text().lines().any(|found| found == line(value));
    let other = lead(elector(&server, "other")).await;
    let candidate = elector(&server, "a");
    candidate.register_metrics(&registry, "flunders");
    let next = tokio::spawn(lead(candidate));
    sleep(60 * SECOND).await;
    assert!(shows(0), "{}", registry.text());
    stop(other.1).await;
    let (_, run) = next.await.unwrap();
    assert!(shows(1), "{}", registry.text());
    // Renewals fail: it is over when the deadline has passed, before the work has ended.
    server.set_down(true);
    sleep(ElectionConfig::default().renew_deadline + SECOND).await;
    assert!(!shows(1), "{}", registry.text());
    assert!(run.stop().await.is_err());
    assert_eq!(registry.text(), "");
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_while_the_work_ends() {
    let (server, cancel) = (Server::default(), CancellationToken::new());
    let run = elector(&server, "a").run(&cancel, async |leadership| {
        leadership.cancel().cancelled().await;
        sleep(60 * SECOND).await;
        leadership.guard().check()
    });
    let (ended, ()) = tokio::join!(run, async {
        sleep(SECOND).await;
        cancel.cancel();
    });
    assert!(ended.unwrap().unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn trap_41_a_new_candidate_waits_a_full_lease_duration() {
    for skew in [0_i64, 3600, -3600] {
        let server = Server::default();
        // Its times are long past, which says nothing.
        server.store(held_by("gone", 15));
        let wall = move || {
            let (now, wrong) = (SystemTime::now(), Duration::from_secs(skew.unsigned_abs()));
            if skew < 0 { now - wrong } else { now + wrong }
        };
        let config = ElectionConfig::default();
        let clocks = Clocks::with_wall(wall);
        let store = Box::new(server.clone());
        let candidate = LeaderElector::with_clocks(store, "b".into(), config, clocks).unwrap();
        let start = Instant::now();
        let (leadership, run) = lead(candidate).await;
        let waited = start.elapsed();
        // A lease duration, and at most one pause between attempts.
        assert!((15 * SECOND..20 * SECOND).contains(&waited), "{waited:?}");
        assert_eq!(leadership.term(), 4);
        run.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn trap_41_a_leader_whose_clock_is_an_hour_behind_keeps_the_lease() {
    let server = Server::default();
    let late = Clocks::with_wall(|| SystemTime::now() - Duration::from_secs(3600));
    let config = ElectionConfig::default();
    let store = Box::new(server.clone());
    let candidate = LeaderElector::with_clocks(store, "a".into(), config, late).unwrap();
    let (leadership, run) = lead(candidate).await;
    let other = tokio::spawn(lead(elector(&server, "b")));
    for _ in 0..600 {
        sleep(SECOND).await;
        leadership.guard().check().unwrap();
        assert!(!other.is_finished());
    }
    run.stop().await.unwrap();
    other.await.unwrap().1.stop().await.unwrap();
}

/// Each renewal has a time of its own, also of a clock that stands still, and after the last time that there is.
#[tokio::test(start_paused = true)]
async fn every_renewal_changes_the_lease() {
    let latest = MicroTime::from_unix_micros(i64::MAX);
    let years = |number: u64| Duration::from_secs(number * 365 * 24 * 3600);
    for (wall, renewed) in [(0, None), (50, Some(latest)), (9000, None)] {
        let server = Server::default();
        let config = ElectionConfig::default();
        let clocks = Clocks::with_wall(move || SystemTime::UNIX_EPOCH + years(wall));
        let store = Box::new(server.clone());
        let candidate = LeaderElector::with_clocks(store, "a".into(), config, clocks).unwrap();
        let (leadership, run) = lead(candidate).await;
        if renewed.is_some() {
            server.edit(|lease| lease.spec.renew_time = renewed);
        }
        let other = tokio::spawn(lead(elector(&server, "b")));
        sleep(120 * SECOND).await;
        leadership.guard().check().unwrap();
        assert!(!other.is_finished(), "{wall}");
        other.abort();
        run.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn trap_42_a_leader_that_cannot_renew_stops_before_another_may_lead() {
    let server = Server::default();
    let (leadership, run) = lead(elector(&server, "a")).await;
    sleep(SECOND).await;
    server.set_down(true);
    let start = Instant::now();
    while leadership.guard().check().is_ok() {
        sleep(SECOND / 10).await;
    }
    // The last renewal may have been up to a retry period before the failure.
    let open = start.elapsed();
    assert!((7 * SECOND..=10 * SECOND).contains(&open), "{open:?}");
    let lost = run.task.await.unwrap().unwrap_err();
    assert!(leadership.cancel().is_cancelled());
    assert!(lost.to_string().contains("connection refused"), "{lost}");
    // What is up again does not open the guard again.
    server.set_down(false);
    sleep(SECOND).await;
    assert_eq!(leadership.guard().check(), Err(NotLeader));
}

/// Does not answer one of the updates.
struct HangingOnce {
    server: Server,
    updates: AtomicUsize,
}

impl LeaseStore for HangingOnce {
    fn get(&self) -> BoxFuture<'_, Result<Option<Lease>, LeaseError>> {
        self.server.get()
    }
    fn create(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        self.server.create(lease)
    }
    fn update(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        if self.updates.fetch_add(1, Ordering::SeqCst) == 1 {
            return std::future::pending().boxed();
        }
        self.server.update(lease)
    }
}

#[tokio::test(start_paused = true)]
async fn trap_42_a_renewal_that_hangs_is_followed_by_another() {
    let store = HangingOnce {
        server: Server::default(),
        updates: AtomicUsize::default(),
    };
    let elector = LeaderElector::new(store, "a", ElectionConfig::default()).unwrap();
    let (leadership, run) = lead(elector).await;
    sleep(60 * SECOND).await;
    leadership.guard().check().unwrap();
    stop(run).await;
}

/// A suspended machine: the monotonic clock stands still, that of the wall does not.
#[tokio::test(start_paused = true)]
async fn trap_42_a_leader_that_was_suspended_cannot_write() {
    let server = Server::default();
    let hours = Arc::new(AtomicUsize::new(0));
    let clocks = Clocks::with_wall({
        let hours = Arc::clone(&hours);
        move || {
            let hours = u64::try_from(hours.load(Ordering::SeqCst)).unwrap();
            SystemTime::UNIX_EPOCH + Duration::from_secs(hours * 3600)
        }
    });
    let config = ElectionConfig::default();
    let store = Box::new(server.clone());
    let candidate = LeaderElector::with_clocks(store, "a".into(), config, clocks).unwrap();
    let (leadership, run) = lead(candidate).await;
    leadership.guard().check().unwrap();
    hours.store(1, Ordering::SeqCst);
    assert_eq!(leadership.guard().check(), Err(NotLeader));
    assert!(run.task.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn trap_42_work_that_goes_on_is_dropped_when_another_may_lead() {
    let server = Server::default();
    let start = Instant::now();
    let work = async |_: Leadership| {
        server.set_down(true);
        std::future::pending::<()>().await;
    };
    elector(&server, "a")
        .run(&CancellationToken::new(), work)
        .await
        .unwrap_err();
    assert_eq!(start.elapsed(), 15 * SECOND);
    // Another that has it already leaves no time.
    server.set_down(false);
    let start = Instant::now();
    let work = async |_: Leadership| {
        server.edit(|lease| lease.spec.holder_identity = Some("thief".into()));
        std::future::pending::<()>().await;
    };
    let lost = elector(&server, "a")
        .run(&CancellationToken::new(), work)
        .await
        .unwrap_err();
    assert!(lost.to_string().contains("thief"), "{lost}");
    assert!(start.elapsed() <= 20 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn trap_42_a_dropped_election_closes_its_guard() {
    let server = Server::default();
    let (leadership, run) = lead(elector(&server, "a")).await;
    run.task.abort();
    run.task.await.unwrap_err();
    assert_eq!(leadership.guard().check(), Err(NotLeader));
    assert!(leadership.cancel().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn trap_43_a_foreign_change_is_kept_and_the_lease_renewed() {
    let server = Server::default();
    let (leadership, run) = lead(elector(&server, "a")).await;
    server.edit(|lease| {
        lease.metadata.labels.insert("tool".into(), "x".into());
        lease.spec.other.insert("strategy".into(), json!("Custom"));
        lease.other.insert("unknown".into(), json!({"a": 1}));
    });
    sleep(60 * SECOND).await;
    leadership.guard().check().unwrap();
    let lease = server.lease().unwrap();
    let changed = serde_json::to_value(&lease).unwrap();
    assert_eq!(changed["metadata"]["labels"]["tool"], "x");
    assert_eq!(changed["spec"]["strategy"], "Custom");
    assert_eq!(changed["unknown"], json!({"a": 1}));
    let renewed = lease.spec.renew_time.unwrap();
    assert!(renewed > lease.spec.acquire_time.unwrap());
    run.stop().await.unwrap();
    let released = serde_json::to_value(server.lease().unwrap()).unwrap();
    assert_eq!(released["spec"]["strategy"], "Custom");
    assert_eq!(released["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn trap_43_foreign_changes_do_not_prolong_a_lease() {
    let server = Server::default();
    server.store(held_by("gone", 15));
    let next = tokio::spawn(lead(elector(&server, "b")));
    for _ in 0..18 {
        server.edit(|lease| {
            lease.metadata.annotations.insert("a".into(), "b".into());
        });
        sleep(SECOND).await;
    }
    sleep(2 * SECOND).await;
    assert!(next.is_finished());
    next.await.unwrap().1.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn trap_43_a_leader_whose_term_is_ended_by_another_program_stops() {
    type End = fn(&mut LeaseSpec);
    let ends: [(&str, End); 4] = [
        ("removed", |spec| spec.holder_identity = Some(String::new())),
        ("removed", |spec| spec.holder_identity = None),
        // Another process led meanwhile.
        ("term", |spec| spec.lease_transitions = Some(2)),
        // Expired at once.
        ("thief", |spec| {
            spec.holder_identity = Some("thief".to_owned());
            spec.lease_duration_seconds = Some(1);
        }),
    ];
    for (expected, end) in ends {
        let server = Server::default();
        let (leadership, run) = lead(elector(&server, "a")).await;
        sleep(SECOND).await;
        server.edit(|lease| end(&mut lease.spec));
        sleep(3 * SECOND).await;
        assert_eq!(leadership.guard().check(), Err(NotLeader), "{expected}");
        let lost = run.task.await.unwrap().unwrap_err();
        assert!(lost.to_string().contains(expected), "{lost}");
        // The next term is another one.
        let (next, run) = lead(elector(&server, "a")).await;
        if expected == "removed" {
            assert_eq!(next.term(), 1);
        }
        stop(run).await;
    }
}

#[tokio::test(start_paused = true)]
async fn trap_43_only_the_holder_releases() {
    let server = Server::default();
    let (_, run) = lead(elector(&server, "a")).await;
    server.edit(|lease| lease.spec.holder_identity = Some("b".into()));
    // It does not know yet that it lost the lease, and its work ends.
    assert_eq!(run.stop().await, Ok(Some(())));
    assert_eq!(server.lease().unwrap().spec.holder(), Some("b"));
    // After a foreign change, the holder still releases.
    server.edit(|lease| lease.spec.holder_identity = None);
    let (_, run) = lead(elector(&server, "c")).await;
    server.edit(|lease| {
        lease.metadata.labels.insert("tool".into(), "x".into());
    });
    run.stop().await.unwrap();
    assert_eq!(server.lease().unwrap().spec.holder(), None);
}

#[tokio::test(start_paused = true)]
async fn trap_43_the_duration_of_the_holder_counts() {
    for (seconds, expected) in [(3, 3), (60, 60), (0, 15), (-7, 15)] {
        let server = Server::default();
        server.store(held_by("gone", seconds));
        let start = Instant::now();
        let (_, run) = lead(elector(&server, "b")).await;
        let waited = start.elapsed();
        let shortest = Duration::from_secs(expected);
        assert!(
            (shortest..shortest + 5 * SECOND).contains(&waited),
            "{seconds}: {waited:?}"
        );
        run.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_left_to_its_holder_for_its_time() {
    let server = Server::default();
    server.store(held_by("a", 15));
    let start = Instant::now();
    let next = tokio::spawn(lead(elector(&server, "b")));
    sleep(SECOND).await;
    *server.0.lease.lock().unwrap() = None;
    let (leadership, run) = next.await.unwrap();
    assert!(start.elapsed() >= 15 * SECOND);
    assert_eq!(leadership.term(), 4, "terms go on");
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_that_create_the_lease_at_once_are_one_leader() {
    let server = Server::default();
    let (_, first) = lead(elector(&server, "a")).await;
    let lease = Lease::default();
    assert!(matches!(
        server.create(lease).await,
        Err(LeaseError::Conflict)
    ));
    first.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_refused_until_the_deadline_ends_the_election() {
    let server = Server::default();
    server.0.is_refused.store(true, Ordering::SeqCst);
    let (start, cancel) = (Instant::now(), CancellationToken::new());
    let run = elector(&server, "a").run(&cancel, async |_| ());
    let ended = timeout(60 * SECOND, run).await.expect("it ends");
    let refused = ElectionError::Refused("no such namespace".to_owned());
    assert_eq!(ended, Err(refused.clone()));
    assert_eq!(
        refused.to_string(),
        "cannot acquire the lease: no such namespace"
    );
    let deadline = ElectionConfig::default().renew_deadline;
    assert!(start.elapsed() >= deadline && start.elapsed() < deadline + SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_refused_for_a_while_is_waited_for() {
    let server = Server::default();
    server.0.is_refused.store(true, Ordering::SeqCst);
    let next = tokio::spawn(lead(elector(&server, "a")));
    sleep(8 * SECOND).await;
    server.0.is_refused.store(false, Ordering::SeqCst);
    let (_, run) = next.await.unwrap();
    run.stop().await.unwrap();
    // Nothing follows from a server that does not answer.
    server.set_down(true);
    let next = tokio::spawn(lead(elector(&server, "b")));
    sleep(120 * SECOND).await;
    server.set_down(false);
    next.await.unwrap().1.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_taken_as_soon_as_it_expires() {
    let server = Server::default();
    server.store(held_by("a", 15));
    let start = Instant::now();
    let (_, run) = lead(elector(&server, "b")).await;
    assert_eq!(start.elapsed().as_secs(), 15);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_time_in_which_a_lease_was_only_followed_counts() {
    let server = Server::default();
    server.store(held_by("a", 15));
    let start = Instant::now();
    let mut next = elector(&server, "b");
    let followed = timeout(14 * SECOND, next.follow()).await;
    assert!(followed.is_err(), "it follows for ever");
    let (_, run) = lead(next).await;
    assert_eq!(start.elapsed().as_secs(), 15);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_signal_before_the_lease_is_ours_ends_the_wait() {
    let (server, cancel) = (Server::default(), CancellationToken::new());
    server.store(held_by("other", 60));
    let run = elector(&server, "a").run(&cancel, async |_| ());
    let (ended, ()) = tokio::join!(run, async {
        sleep(5 * SECOND).await;
        cancel.cancel();
    });
    assert_eq!(ended, Ok(None));
    assert_eq!(server.lease().unwrap().spec.holder(), Some("other"));
}

#[test]
fn times_that_do_not_fit_are_refused() {
    let check = |lease: u64, renew: u64, retry: u64| {
        let config = ElectionConfig {
            lease_duration: Duration::from_millis(lease),
            renew_deadline: Duration::from_millis(renew),
            retry_period: Duration::from_millis(retry),
            release: true,
        };
        LeaderElector::new(Server::default(), "a", config).map(|_| config.lease_seconds())
    };
    assert_eq!(check(15_000, 10_000, 2_000).unwrap(), 15);
    assert_eq!(check(15_001, 10_000, 2_000).unwrap(), 16);
    assert_eq!(check(900, 800, 100).unwrap(), 1);
    let text = |result: Result<i32, ElectionConfigError>| result.unwrap_err().to_string();
    assert_eq!(
        text(check(10_000, 10_000, 2_000)),
        "the lease duration, 10s, must be longer than the renew deadline, 10s"
    );
    assert_eq!(
        text(check(15_000, 10_000, 9_000)),
        "the renew deadline, 10s, must be longer than 1.2 times the retry period, 9s"
    );
    assert!(matches!(
        check(15_000, 10_000, 0),
        Err(ElectionConfigError::RetryPeriod(_))
    ));
    assert!(matches!(
        check(u64::MAX, 10_000, 1),
        Err(ElectionConfigError::TooLong(_))
    ));
    let unnamed = LeaderElector::new(Server::default(), "", ElectionConfig::default());
    assert_eq!(unnamed.unwrap_err(), ElectionConfigError::NoIdentity);
    let identity = || LeaderElector::unique_identity("host");
    assert_ne!(identity(), identity());
}

#[test]
fn times_in_a_lease_have_microseconds() {
    let mut lease = held_by("a", 15);
    lease.spec.renew_time = Some(MicroTime::from_unix_micros(1));
    let json = serde_json::to_value(&lease).unwrap();
    assert_eq!(json["spec"]["renewTime"], "1970-01-01T00:00:00.000001Z");
}
