//! A candidate: acquires the lease, renews it while its work goes on, and gives it up.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::sync::{Arc, Weak};
use std::time::Duration;

use apiloom_meta::MicroTime;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use super::clock::{Clocks, Reading};
use super::config::{ElectionConfig, ElectionConfigError, MAX_JITTER};
use super::leadership::{Ending, Leadership, WriteGuard};
use super::lease::{Lease, LeaseSpec};
use super::observed::ObservedLease;
use super::store::{LeaseError, LeaseStore};
use crate::metrics::{Collect, Registry, Samples};

/// Why an election ended without the end of the work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// The lease could not be renewed in time, or another process has it.
    #[error("lost the lease: {0}")]
    Lost(String),
    /// The server refused the lease for the whole renew deadline: its namespace does not exist, Leases are not served, or
    /// this user may not write them.
    #[error("cannot acquire the lease: {0}")]
    Refused(String),
}

/// Runs work in one process at a time, of all that have an elector for the same lease.
///
/// ```no_run
/// # use apiloom_client::Client;
/// # use apiloom_client::controller::{CancellationToken, ClientLease, ElectionConfig, LeaderElector, ElectionError};
/// # async fn work(_: &CancellationToken) {}
/// # async fn example(client: &Client) -> Result<(), ElectionError> {
/// let lease = ClientLease::new(client, "kube-system", "flunder-controller");
/// let cancel = CancellationToken::new();
/// let identity = LeaderElector::unique_identity("worker-1");
/// let elector = LeaderElector::new(lease, identity, ElectionConfig::default()).expect("valid times");
/// elector
///     .run(&cancel, async |leadership| work(leadership.cancel()).await)
///     .await?;
/// # Ok(())
/// # }
/// ```
pub struct LeaderElector {
    store: Box<dyn LeaseStore>,
    identity: String,
    config: ElectionConfig,
    clocks: Clocks,
    observed: Option<ObservedLease>,
    holder: watch::Sender<Option<String>>,
    attempts: u64,
    /// Open while this process leads.
    leading: Arc<Mutex<Option<WriteGuard>>>,
}

/// How an attempt to get or to renew the lease ended.
enum Attempt {
    /// It is ours; the write that says so began at this time.
    Held(Reading),
    /// Another process has it.
    HeldByOther(String),
    /// It was renewed in vain: another program changed its holder, which says how.
    Lost(String),
}

impl LeaderElector {
    /// A candidate.
    ///
    /// No two processes may have the same identity, not even one after the other: see
    /// [`unique_identity`](Self::unique_identity).
    ///
    /// # Errors
    /// If the times do not fit together, or the identity is empty.
    pub fn new(
        store: impl LeaseStore + 'static,
        identity: impl Into<String>,
        config: ElectionConfig,
    ) -> Result<Self, ElectionConfigError> {
        Self::with_clocks(Box::new(store), identity.into(), config, Clocks::default())
    }

    pub(super) fn with_clocks(
        store: Box<dyn LeaseStore>,
        identity: String,
        config: ElectionConfig,
        clocks: Clocks,
    ) -> Result<Self, ElectionConfigError> {
        config.check()?;
        if identity.is_empty() {
            return Err(ElectionConfigError::NoIdentity);
        }
        Ok(Self {
            store,
            identity,
            config,
            clocks,
            observed: None,
            holder: watch::Sender::new(None),
            attempts: 0,
            leading: Arc::default(),
        })
    }

    /// An identity that no other process has: a prefix that people recognize, such as the name of the host, and a random
    /// number.
    pub fn unique_identity(prefix: &str) -> String {
        // Each state has keys of its own.
        let random = || RandomState::new().hash_one(prefix);
        format!("{prefix}_{:016x}{:016x}", random(), random())
    }

    /// The holder of the lease as this candidate last saw it, also while it waits.
    pub fn holder(&self) -> watch::Receiver<Option<String>> {
        self.holder.subscribe()
    }

    /// Adds `leader_election_master_status` to a registry, with the label `name`: 1 while this process leads, else 0. It
    /// stays as long as this candidate exists or runs.
    pub fn register_metrics(&self, registry: &Registry, name: impl Into<String>) {
        registry.register(Collector {
            leading: Arc::downgrade(&self.leading),
            name: name.into(),
        });
    }

    /// Waits for the lease, and calls `lead` while it has it. The lease is renewed until the future of `lead` is ready,
    /// also after the signal, which `lead` gets too; then it is given up. `None` if the signal came before this process
    /// led.
    ///
    /// The work is polled by the task that renews the lease, so it must not block: long computations belong in tasks.
    ///
    /// # Errors
    /// If the server refuses the lease for as long as the renew deadline, so that waiting is in vain; a server that does not
    /// answer is waited for. If the lease was lost. The guard is closed then, and the work was told to end. It is dropped at the time at which
    /// another process may lead, if it goes on for so long: tasks that it spawned must end by the signal.
    pub async fn run<F, R>(
        mut self,
        cancel: &CancellationToken,
        lead: F,
    ) -> Result<Option<R::Output>, ElectionError>
    where
        F: FnOnce(Leadership) -> R,
        R: Future,
    {
        let renewed = tokio::select! {
            renewed = self.acquire() => renewed?,
            () = cancel.cancelled() => {
                // The signal may come just when the lease was acquired.
                if self.config.release {
                    self.release().await;
                }
                return Ok(None);
            }
        };
        let observed = self.observed.as_ref();
        let term = observed.and_then(|observed| observed.lease().spec.lease_transitions);
        let guard = WriteGuard::new(self.clocks.clone(), self.config.renew_deadline, renewed);
        *self.leading.lock() = Some(guard.clone());
        let leadership = Leadership {
            guard,
            cancel: cancel.child_token(),
            term: term.unwrap_or_default(),
        };
        info!(identity = %self.identity, term = leadership.term, "became leader");
        let ending = Ending(&leadership);
        let work = lead(leadership.clone());
        tokio::pin!(work);
        let (reason, exclusive_until) = tokio::select! {
            output = &mut work => {
                // Closed before the lease is given up: what the work left behind must not write any more.
                drop(ending);
                if self.config.release {
                    self.release().await;
                }
                return Ok(Some(output));
            }
            lost = self.keep(&leadership, renewed) => lost,
        };
        warn!(identity = %self.identity, "lost the lease: {reason}");
        drop(ending);
        // Another process may lead from this time on.
        if timeout_at(exclusive_until, work).await.is_err() {
            warn!(identity = %self.identity, "the work went on after the lease was lost, and was dropped");
        }
        Err(ElectionError::Lost(reason))
    }

    /// Follows the lease without standing for it; never returns. The time for which it does not change meanwhile counts when this
    /// candidate stands for it afterwards.
    pub async fn follow(&mut self) {
        loop {
            match self.limited(self.store.get()).await {
                Ok(Some(lease)) => self.observe(lease),
                Ok(None) => {}
                Err(error) => debug!("cannot read the lease: {error}"),
            }
            sleep(self.config.retry_period).await;
        }
    }

    /// Waits until the lease is ours.
    ///
    /// # Errors
    /// If it is refused until the deadline.
    async fn acquire(&mut self) -> Result<Reading, ElectionError> {
        let deadline = self.config.renew_deadline;
        let mut refused_since = None;
        loop {
            let began = Instant::now();
            let answer = timeout(deadline, self.attempt(None)).await;
            refused_since = match &answer {
                Ok(Err(LeaseError::Refused(_))) => refused_since.or(Some(began)),
                _ => None,
            };
            let mut wait = self.wait_after_attempt();
            match answer {
                // The answer may be old, if this process did not run for a while.
                Ok(Ok(Attempt::Held(began))) if self.is_fresh(began) => return Ok(began),
                Ok(Ok(Attempt::Held(_))) => debug!("the lease was acquired too slowly"),
                Ok(Ok(Attempt::HeldByOther(holder))) => debug!(%holder, "the lease is held"),
                Ok(Ok(Attempt::Lost(reason))) => debug!("the lease is not ours: {reason}"),
                Ok(Err(LeaseError::Refused(reason))) => {
                    error!(identity = %self.identity, "cannot acquire the lease: {reason}");
                    let left = refused_since.map(|since| deadline.saturating_sub(since.elapsed()));
                    match left.filter(|left| !left.is_zero()) {
                        Some(left) => wait = wait.min(left),
                        None => return Err(ElectionError::Refused(reason)),
                    }
                }
                Ok(Err(error)) => warn!("cannot acquire the lease: {error}"),
                Err(_) => warn!("cannot acquire the lease: no answer in time"),
            }
            sleep(wait).await;
        }
    }

    /// The wait for the next attempt to acquire the lease: until the present one expires, if that is earlier.
    fn wait_after_attempt(&mut self) -> Duration {
        let period = self.config.retry_period;
        let wait = period + period.mul_f64(MAX_JITTER * self.fraction());
        let observed = self.observed.as_ref();
        let left = observed.and_then(|seen| seen.time_left(self.config.lease_duration));
        left.map_or(wait, |left| wait.min(left))
    }

    fn is_fresh(&self, began: Reading) -> bool {
        self.clocks.longest_since(began) < self.config.renew_deadline
    }

    /// A number from 0 to 1 that differs between candidates and attempts.
    fn fraction(&mut self) -> f64 {
        self.attempts += 1;
        let mut hasher = DefaultHasher::new();
        (&self.identity, self.attempts).hash(&mut hasher);
        hasher.finish() as f64 / u64::MAX as f64
    }

    /// Renews the lease until that fails for too long. Returns the reason, and until when no other process leads.
    async fn keep(&mut self, leadership: &Leadership, acquired: Reading) -> (String, Instant) {
        let guard = &leadership.guard;
        let mut renewed = acquired;
        let mut last_error = String::from("this process did not run");
        loop {
            let left = guard.check().unwrap_or_default();
            sleep(self.config.retry_period.min(left)).await;
            let Ok(left) = guard.check() else {
                break;
            };
            last_error = match timeout(left, self.attempt(Some(leadership.term))).await {
                Ok(Ok(Attempt::Held(began))) => {
                    if guard.renew(began).is_err() {
                        break;
                    }
                    renewed = began;
                    continue;
                }
                Ok(Ok(Attempt::HeldByOther(holder))) => {
                    return (format!("{holder} has it"), Instant::now());
                }
                Ok(Ok(Attempt::Lost(reason))) => return (reason, Instant::now()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer in time".to_owned(),
            };
            warn!("cannot renew the lease: {last_error}");
        }
        let reason = format!(
            "it was not renewed within {:?}: {last_error}",
            self.config.renew_deadline
        );
        (reason, renewed.monotonic + self.config.lease_duration)
    }

    /// Tries once to acquire the lease, or to renew it in a term. What ends a term is not renewed: another process may have
    /// led since, and the next term is that of another leadership.
    async fn attempt(&mut self, term: Option<i32>) -> Result<Attempt, LeaseError> {
        // Others do not write a lease that is held, so the version from the last renewal is mostly right.
        if let Some(lease) = self.held() {
            match self.write(Some(lease)).await {
                Ok(began) => return Ok(Attempt::Held(began)),
                Err(error) => debug!("cannot renew the lease at once, reading it: {error}"),
            }
        }
        let found = self.limited(self.store.get()).await?;
        if let Some(lease) = &found {
            self.observe(lease.clone());
        }
        if let (Some(lease), Some(term)) = (&found, term)
            && let Some(reason) = self.end_of_term(&lease.spec, term)
        {
            return Ok(Attempt::Lost(reason));
        }
        // A lease that was deleted is left to its holder for its time, too.
        let observed = self.observed.as_ref();
        let holder = observed.and_then(|seen| seen.current_holder(self.config.lease_duration));
        match holder.filter(|holder| *holder != self.identity) {
            Some(holder) => Ok(Attempt::HeldByOther(holder.to_owned())),
            None => self.write(found).await.map(Attempt::Held),
        }
    }

    /// Why a lease that was read is not that of this process in this term; `None` if it is, also if it is expired.
    fn end_of_term(&self, spec: &LeaseSpec, term: i32) -> Option<String> {
        match spec.holder() {
            None => Some("its holder was removed".to_owned()),
            Some(holder) if holder != self.identity => Some(format!("{holder} has it")),
            Some(_) if spec.lease_transitions.unwrap_or_default() != term => {
                Some("its term has ended".to_owned())
            }
            Some(_) => None,
        }
    }

    /// The lease, if it was ours when it was last seen.
    fn held(&self) -> Option<Lease> {
        let observed = self.observed.as_ref()?;
        let is_ours = observed.is_held_by(&self.identity);
        is_ours.then(|| observed.lease().clone())
    }

    fn observe(&mut self, lease: Lease) {
        let holder = lease.spec.holder().map(str::to_owned);
        self.observed = Some(ObservedLease::update(self.observed.take(), lease));
        self.holder.send_if_modified(|old| {
            let is_new = *old != holder;
            *old = holder;
            is_new
        });
    }

    /// Writes the lease with this process as its holder, and returns when the write began.
    async fn write(&mut self, found: Option<Lease>) -> Result<Reading, LeaseError> {
        let began = self.clocks.read();
        let written = match found {
            Some(mut lease) => {
                self.set_holder(&mut lease.spec);
                self.limited(self.store.update(lease)).await?
            }
            None => {
                let mut lease = Lease::default();
                self.set_holder(&mut lease.spec);
                lease.spec.lease_transitions = Some(self.transitions_of_new_lease());
                self.limited(self.store.create(lease)).await?
            }
        };
        self.observe(written);
        Ok(began)
    }

    /// Waits for a request, but not so long that there is no time for another one. The server may still execute it; then
    /// the next write has an old version.
    async fn limited<T>(
        &self,
        request: BoxFuture<'_, Result<T, LeaseError>>,
    ) -> Result<T, LeaseError> {
        let answered = timeout(self.config.request_timeout(), request).await;
        answered.unwrap_or_else(|_| Err(LeaseError::Other("no answer in time".into())))
    }

    /// Zero, or what continues a lease that was deleted.
    fn transitions_of_new_lease(&self) -> i32 {
        let Some(observed) = &self.observed else {
            return 0;
        };
        let transitions = observed.lease().spec.lease_transitions.unwrap_or_default();
        let is_new_holder = !observed.is_held_by(&self.identity);
        transitions.saturating_add(i32::from(is_new_holder))
    }

    fn set_holder(&self, spec: &mut LeaseSpec) {
        let now = self.next_renew_time(spec);
        if spec.holder() != Some(&*self.identity) {
            spec.acquire_time = Some(now);
            let transitions = spec.lease_transitions.unwrap_or_default();
            spec.lease_transitions = Some(transitions.saturating_add(1));
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = Some(self.config.lease_seconds());
        spec.renew_time = Some(now);
    }

    /// The time of the wall, but later than the one in the lease: others know a renewal by its change. After the last time
    /// that a lease can have, the times start anew from that of the wall, or go back if that is the last one.
    fn next_renew_time(&self, spec: &LeaseSpec) -> MicroTime {
        let now = self.clocks.wall();
        let latest = MicroTime::from_unix_micros(i64::MAX);
        match spec.renew_time {
            Some(last) if now == latest => MicroTime::from_unix_micros(last.unix_micros() - 1),
            Some(last) if now <= last && last < latest => last.plus(Duration::from_micros(1)),
            _ => now,
        }
    }

    /// Gives up the lease, if it is still ours. Without success others wait until it expires.
    async fn release(&mut self) {
        if self.held().is_none() {
            return;
        }
        let limit = self.config.renew_deadline;
        match timeout(limit, self.try_release()).await {
            Ok(Ok(())) => info!(identity = %self.identity, "released the lease"),
            Ok(Err(error)) => warn!("cannot release the lease, it expires: {error}"),
            Err(_) => warn!("cannot release the lease, it expires: no answer in time"),
        }
    }

    async fn try_release(&mut self) -> Result<(), LeaseError> {
        let Some(lease) = self.held() else {
            return Ok(());
        };
        match self.write_released(lease).await {
            Err(LeaseError::Conflict) => {}
            done => return done,
        }
        let Some(lease) = self.limited(self.store.get()).await? else {
            return Ok(());
        };
        self.observe(lease);
        match self.held() {
            Some(lease) => self.write_released(lease).await,
            None => Ok(()),
        }
    }

    async fn write_released(&mut self, mut lease: Lease) -> Result<(), LeaseError> {
        let now = self.next_renew_time(&lease.spec);
        // As client-go does: empty and short, for readers that know only one of the two.
        lease.spec.holder_identity = Some(String::new());
        lease.spec.lease_duration_seconds = Some(1);
        lease.spec.renew_time = Some(now);
        let written = self.limited(self.store.update(lease)).await?;
        self.observe(written);
        Ok(())
    }
}

/// Reports whether a candidate leads, without keeping it.
struct Collector {
    leading: Weak<Mutex<Option<WriteGuard>>>,
    name: String,
}

impl Collect for Collector {
    fn collect(&self, samples: &mut Samples) {
        let Some(leading) = self.leading.upgrade() else {
            return;
        };
        let leading = leading.lock();
        let leads = leading.as_ref().is_some_and(|guard| guard.check().is_ok());
        samples.gauge(
            "leader_election_master_status",
            "Whether this process leads.",
            &[("name", &self.name)],
            f64::from(u8::from(leads)),
        );
    }
    fn is_gone(&self) -> bool {
        self.leading.strong_count() == 0
    }
}

impl fmt::Debug for LeaderElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElector")
            .field("identity", &self.identity)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
