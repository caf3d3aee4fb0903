//! A connection to etcd, and what reads and writes need of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use etcd_client::proto::PbRangeResponse;
use etcd_client::{GetOptions, StatusResponse};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::compactor;
use super::config::{ConnectError, EtcdConfig};
use super::failure::Failure;
use super::history::History;
use super::lease::Leases;
use super::members::{Members, Safety};
use super::past::Past;
use super::pump::Pump;
use super::single_flight::SingleFlight;
use super::wire::{self, Range};
use crate::feed::Feed;
use crate::{Entry, Revision, StorageError};

/// Timeout of a caller that waits until the watch of etcd has caught up.
const CATCH_UP: Duration = Duration::from_secs(5);

/// The pause between attempts to find a member that answers.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// A store in etcd.
///
/// ```no_run
/// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
/// use apiloom_storage::{Etcd, EtcdConfig, Storage};
///
/// let store = Etcd::connect(EtcdConfig::new(["http://127.0.0.1:2379"])).await?;
/// store.create("/registry/pods/ns/a", "{}".into(), None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Etcd {
    pub(super) members: Arc<Members>,
    pub(super) history: Arc<History>,
    pub(super) feed: Arc<Feed>,
    pub(super) leases: Leases,
    pub(super) present: Arc<SingleFlight<Result<Revision, Failure>>>,
    pub(super) wanted: Arc<Notify>,
    pub(super) reached: watch::Receiver<Revision>,
    pub(super) closed: Arc<AtomicBool>,
    /// Page size of lists.
    pub(super) list_chunk: usize,
    pub(super) tasks: Vec<AbortHandle>,
}

impl Etcd {
    /// Connects, and waits until a member answers.
    ///
    /// # Errors
    /// When no member answers within [`EtcdConfig::connect_timeout`], or a certificate cannot be read.
    pub async fn connect(config: EtcdConfig) -> Result<Arc<Self>, ConnectError> {
        let members = Arc::new(Members::new(&config).await?);
        let closed = Arc::new(AtomicBool::new(false));
        let feed = Feed::new(Revision(0));
        let (reached_sender, reached) = watch::channel(Revision(0));
        let past = Past::new(Arc::clone(&feed), reached_sender);
        let history = Arc::new(History {
            members: Arc::clone(&members),
            closed: Arc::clone(&closed),
            past: Arc::new(past),
        });
        let current = first_answer(&config, &members, &history).await?;
        let (generation, _) = history.past.published();
        history.past.skip_to(generation, current);
        let wanted = Arc::new(Notify::new());
        let pump = Pump {
            members: Arc::clone(&members),
            history: Arc::clone(&history),
            prefix: config.prefix,
            wanted: Arc::clone(&wanted),
        };
        let mut tasks = vec![tokio::spawn(pump.run()).abort_handle()];
        if let Some(interval) = config.compaction_interval {
            let compactor = compactor::run(Arc::clone(&members), interval);
            tasks.push(tokio::spawn(compactor).abort_handle());
        }
        Ok(Arc::new(Self {
            leases: Leases::new(Arc::clone(&members)),
            members,
            history,
            feed,
            present: SingleFlight::new(),
            wanted,
            reached,
            closed,
            list_chunk: config.list_chunk.max(1),
            tasks,
        }))
    }

    pub(super) fn check_open(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Relaxed) {
            Err(StorageError::Unavailable("the store is closed".into()))
        } else {
            Ok(())
        }
    }

    /// The entry of a key, and the revision at which it was read.
    pub(super) async fn entry(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        self.check_open()?;
        if key.is_empty() {
            // etcd does not accept this key, so it cannot exist.
            return Ok((None, self.history.current_revision().await?));
        }
        let before = self.history.past.seen();
        let answer = self
            .members
            .call(Safety::Read, async |member| {
                member.kv().get(key, None).await
            })
            .await?
            .0;
        self.history.judge(before, answer.header.as_ref()).await?;
        let revision = wire::header_revision(answer.header.as_ref());
        let pair = answer.kvs.into_iter().next();
        Ok((pair.map(wire::entry).transpose()?, revision))
    }

    /// The revision of the newest write, agreed by a quorum. Every consistent read needs it, so concurrent queries are
    /// coalesced.
    pub(super) async fn present(&self) -> Result<Revision, Failure> {
        let history = Arc::clone(&self.history);
        let ask = move || async move { history.current_revision().await };
        self.present.ask(ask).await
    }

    pub(super) async fn range(
        &self,
        range: &Range,
        options: GetOptions,
    ) -> Result<PbRangeResponse, Failure> {
        let options = options.with_range(range.end.clone());
        let before = self.history.past.seen();
        let answer = self
            .members
            .call(Safety::Scan, async |member| {
                member
                    .kv()
                    .get(range.from.clone(), Some(options.clone()))
                    .await
            })
            .await?
            .0;
        self.history.judge(before, answer.header.as_ref()).await?;
        Ok(answer)
    }

    /// The status of the member in use.
    pub(super) async fn status(&self) -> Result<StatusResponse, Failure> {
        self.members
            .call(Safety::Read, async |member| {
                member.maintenance().status().await
            })
            .await
    }

    /// Waits until the watchers can have everything up to `present`, but no longer than [`CATCH_UP`].
    pub(super) async fn catch_up(&self, present: Revision) -> Result<(), Failure> {
        let mut reached = self.reached.clone();
        if *reached.borrow_and_update() < present {
            self.wanted.notify_one();
            let caught_up = reached.wait_for(|reached| *reached >= present);
            if timeout(CATCH_UP, caught_up).await.is_err() {
                return Err(Failure::Lost("the watch of etcd is behind".to_owned()));
            }
        }
        Ok(())
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        self.feed.close();
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

async fn first_answer(
    config: &EtcdConfig,
    members: &Members,
    history: &History,
) -> Result<Revision, ConnectError> {
    let within = config.connect_timeout;
    let mut reason = "no answer".to_owned();
    let answered = timeout(within, async {
        loop {
            match history.first_revision().await {
                Ok(revision) => return Ok(revision),
                Err(failure) if failure.is_passing() => reason = failure.to_string(),
                Err(failure) => return Err(failure.to_string()),
            }
            sleep(CONNECT_PAUSE).await;
        }
    });
    let answered = answered.await;
    answered
        .unwrap_or(Err(reason))
        .map_err(|reason| ConnectError::Unreachable {
            servers: members.servers(),
            within,
            reason,
        })
}
