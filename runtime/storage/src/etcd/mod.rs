//! The etcd backend: one store for several servers, in the layout of kube-apiserver.
//!
//! Keys and values are stored unchanged; every write is one transaction that compares the key's revision. One watch of
//! etcd serves all watchers through the [`Feed`]; a watcher that is behind reads etcd's history. Keys with a time to
//! live share leases, and so may expire together in one revision.

mod changes;
mod compactor;
mod config;
mod failure;
mod history;
mod lease;
mod list;
mod members;
mod past;
mod pump;
mod single_flight;
mod version;
mod wire;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_client::proto::PbRangeResponse;
use etcd_client::{GetOptions, StatusResponse};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

pub use config::{ConnectError, EtcdConfig, EtcdTls};

use self::failure::Failure;
use self::history::History;
use self::lease::Leases;
use self::members::{Members, Safety};
use self::past::Past;
use self::pump::Pump;
use self::single_flight::SingleFlight;
use self::wire::Range;
use self::write::Expected;
use crate::feed::Feed;
use crate::op::Expiry;
use crate::{Entry, ListRequest, Page, Revision, Storage, StorageError, WatchStart, WatchStream};

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
    members: Arc<Members>,
    history: Arc<History>,
    feed: Arc<Feed>,
    leases: Leases,
    present: Arc<SingleFlight<Result<Revision, Failure>>>,
    wanted: Arc<Notify>,
    reached: watch::Receiver<Revision>,
    closed: Arc<AtomicBool>,
    /// Page size of lists.
    list_chunk: usize,
    tasks: Vec<AbortHandle>,
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

    fn check_open(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Relaxed) {
            Err(StorageError::Unavailable("the store is closed".into()))
        } else {
            Ok(())
        }
    }

    /// The revision of the newest write, agreed by a quorum. Every consistent read needs it, so concurrent queries are
    /// coalesced.
    async fn present(&self) -> Result<Revision, Failure> {
        let history = Arc::clone(&self.history);
        let ask = move || async move { history.current_revision().await };
        self.present.ask(ask).await
    }

    async fn range(&self, range: &Range, options: GetOptions) -> Result<PbRangeResponse, Failure> {
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
    async fn status(&self) -> Result<StatusResponse, Failure> {
        self.members
            .call(Safety::Read, async |member| {
                member.maintenance().status().await
            })
            .await
    }

    /// Waits until the watchers can have everything up to `present`, but no longer than [`CATCH_UP`].
    async fn catch_up(&self, present: Revision) -> Result<(), Failure> {
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

#[async_trait]
impl Storage for Etcd {
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
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

    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        self.check_open()?;
        self.list_pages(&request).await
    }

    async fn count(&self, prefix: &str) -> Result<u64, StorageError> {
        self.check_open()?;
        let options = GetOptions::new().with_count_only();
        let answer = self.range(&Range::of_prefix(prefix), options).await?;
        Ok(answer.count.unsigned_abs())
    }

    async fn create(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        self.check_open()?;
        match self.put(key, Expected::Nothing, value, ttl.into()).await? {
            Ok(revision) => Ok(revision),
            Err(Some(present)) => Err(StorageError::Exists(Box::new(present))),
            Err(None) => Err(StorageError::Unavailable(format!(
                "etcd says of {key:?} both that it is there and that it is not"
            ))),
        }
    }

    async fn update_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        self.check_open()?;
        let done = self
            .put(key, Expected::Revision(expected), value, ttl.into())
            .await?;
        done.map_err(|present| conflict(key, present))
    }

    async fn rewrite_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        self.check_open()?;
        let done = self
            .put(key, Expected::Revision(expected), value, Expiry::Kept)
            .await?;
        done.map_err(|present| conflict(key, present))
    }

    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        self.check_open()?;
        let done = self.delete(key, Expected::Revision(expected)).await?;
        done.map_err(|present| conflict(key, present))
    }

    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        self.check_open()?;
        let (after, present) = match start {
            WatchStart::Now => {
                let present = self.history.current_revision().await?;
                (present, present)
            }
            WatchStart::After(after) => match self.history.check_kept(after).await {
                Ok(present) => (after, present),
                Err(failure) => return Err(self.history.error(failure, after).await),
            },
        };
        // Writes acknowledged before this call count as history for this watch, and its first progress covers them.
        self.catch_up(present).await?;
        let start = WatchStart::After(after);
        Ok(self.feed.watch(prefix, start, Arc::clone(&self.history)))
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        self.check_open()?;
        self.catch_up(self.present().await?).await?;
        self.feed.request_progress();
        Ok(())
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.check_open()?;
        Ok(self.present().await?)
    }

    async fn health(&self) -> Result<(), StorageError> {
        let asked = async {
            self.current_revision().await?;
            Ok(self.status().await?)
        };
        let status = asked.await.map_err(|error: StorageError| {
            // The address of etcd is only for the operator, not for clients.
            tracing::warn!(%error, "etcd is not healthy");
            StorageError::Unavailable("etcd does not answer".to_owned())
        })?;
        // As `memberID:10276657743932975437 alarm:NOSPACE `.
        let raised = |error: &String| Some(error.split_once("alarm:")?.1.trim().to_owned());
        match status.errors().iter().find_map(raised) {
            None => Ok(()),
            Some(alarm) => Err(StorageError::Refused(format!(
                "etcd takes no writes, its alarm {alarm} is raised"
            ))),
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn size_bytes(&self) -> Result<Option<u64>, StorageError> {
        self.check_open()?;
        Ok(Some(self.status().await?.db_size().unsigned_abs()))
    }

    async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        self.check_open()?;
        if revision == Revision(0) {
            return Ok(());
        }
        match compactor::compact(&self.members, revision).await {
            Ok(()) => Ok(()),
            Err(failure) => Err(self.history.error(failure, revision).await),
        }
    }

    async fn close(&self) {
        if self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        // Deliver all acknowledged writes to the watchers first; if etcd is unavailable they get what was received
        // before.
        let caught_up = match self.history.current_revision().await {
            Ok(present) => self.catch_up(present).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = caught_up {
            tracing::warn!(%failure, "closed without delivering the last changes to watchers");
        }
        self.feed.close();
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

fn conflict(key: &str, present: Option<Entry>) -> StorageError {
    StorageError::Conflict {
        key: key.to_owned(),
        present: present.map(Box::new),
    }
}
