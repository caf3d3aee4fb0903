//! Reads etcd's history: the current revision, the compacted revision, and changes for watchers that are behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::proto::PbResponseHeader;
use etcd_client::{GetOptions, WatchOptions};
use tokio::time::{Instant, sleep, timeout};

use super::changes::{Changes, Heard};
use super::failure::Failure;
use super::members::{Members, RETRY_FOR, Safety};
use super::past::{Past, Seen, Verdict, Witness, another};
use super::wire;
use crate::feed::Replay;
use crate::{Revision, StorageError};

/// A key that is read only for the response header. It is the key by which servers agree on compaction.
pub(super) const PROBE_KEY: &str = "compact_rev_key";

/// Maximum changes that a watcher takes from history at a time.
const REPLAY_STEP: usize = 4_096;

/// How often a watch that is catching up is asked for its progress.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Timeout for a member that should send changes, after which another member is used.
const SILENCE: Duration = Duration::from_secs(6);

/// The pause between attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// Reads the history of a store.
#[derive(Debug)]
pub(super) struct History {
    pub(super) members: Arc<Members>,
    pub(super) closed: Arc<AtomicBool>,
    pub(super) past: Arc<Past>,
}

impl History {
    /// The revision of the newest write, agreed by the majority.
    pub(super) async fn current_revision(&self) -> Result<Revision, Failure> {
        self.probe(Revision(0)).await
    }

    /// Checks whether etcd still has the same history, from a response that a quorum agreed to.
    pub(super) async fn judge(
        &self,
        before: Seen,
        header: Option<&PbResponseHeader>,
    ) -> Result<(), Failure> {
        match self.past.judge(before, header) {
            Verdict::Same | Verdict::Another => Ok(()),
            Verdict::LookFor(witness) => self.look_for(witness).await,
        }
    }

    /// Checks, after etcd was unavailable, whether it still has the same history.
    pub(super) async fn look_again(&self) -> Result<(), Failure> {
        match self.past.witness() {
            Some(witness) => self.look_for(witness).await,
            None => self.current_revision().await.map(drop),
        }
    }

    async fn look_for(&self, witness: Witness) -> Result<(), Failure> {
        let before = self.past.seen();
        let options = GetOptions::new().with_revision(wire::number(witness.revision));
        let answer = self
            .members
            .call(Safety::Read, async |member| {
                let options = Some(options.clone());
                member.kv().get(witness.key.as_str(), options).await
            })
            .await;
        match answer {
            Ok(answer) => {
                let header = answer.0.header.as_ref();
                if self.past.judge(before, header) == Verdict::Another {
                    return Ok(());
                }
                let is_witness = answer.0.kvs.first().is_some_and(|pair| {
                    wire::revision(pair.mod_revision) == witness.revision
                        && pair.value == witness.value
                });
                self.past.found(is_witness, before, header);
                Ok(())
            }
            // The change is compacted: etcd can no longer tell.
            Err(Failure::Compacted) => {
                self.past.found(true, before, None);
                Ok(())
            }
            // A revision that existed is in the future now.
            Err(Failure::Future) => {
                let answer = self.header().await?;
                self.past.found(false, before, Some(&answer));
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    /// The response header of a quorum read.
    async fn header(&self) -> Result<PbResponseHeader, Failure> {
        let options = GetOptions::new().with_count_only();
        let answer = self
            .members
            .call(Safety::Read, async |member| {
                member.kv().get(PROBE_KEY, Some(options.clone())).await
            })
            .await?;
        Ok(answer.0.header.unwrap_or_default())
    }

    /// The current revision. Fails with [`Failure::Compacted`] if changes after `revision` are gone.
    pub(super) async fn check_kept(&self, revision: Revision) -> Result<Revision, Failure> {
        // An empty etcd is at revision 1, so nothing can have happened before it.
        match self.probe(revision.max(Revision(1))).await {
            Err(Failure::Future) => {
                let current = self.current_revision().await?;
                if revision > current && revision <= self.past.gone() {
                    Err(Failure::Gone { current })
                } else {
                    Ok(current)
                }
            }
            answered => answered,
        }
    }

    /// The same from one member, without retries.
    pub(super) async fn first_revision(&self) -> Result<Revision, Failure> {
        self.probe_within(Duration::ZERO, Revision(0)).await
    }

    /// Reads no key at a revision, the current one for 0; returns the current revision.
    pub(super) async fn probe(&self, revision: Revision) -> Result<Revision, Failure> {
        self.probe_within(RETRY_FOR, revision).await
    }

    async fn probe_within(
        &self,
        retry_for: Duration,
        revision: Revision,
    ) -> Result<Revision, Failure> {
        let options = GetOptions::new()
            .with_count_only()
            .with_revision(wire::number(revision));
        let before = self.past.seen();
        let answer = self
            .members
            .call_within(retry_for, Safety::Read, async |member| {
                member.kv().get(PROBE_KEY, Some(options.clone())).await
            })
            .await?;
        let header = answer.0.header.as_ref();
        // Boxed because the search for a witness may recurse into this function.
        Box::pin(self.judge(before, header)).await?;
        Ok(wire::header_revision(header))
    }

    /// The error for a compacted revision; etcd names the compacted revision to watches only.
    pub(super) async fn compacted(&self, requested: Revision) -> StorageError {
        let bound = self
            .members
            .call(Safety::Read, async |member| {
                let options = WatchOptions::new().with_start_revision(1);
                let mut watch = member.watch().watch(PROBE_KEY, Some(options)).await?;
                while let Some(message) = watch.message().await? {
                    if message.compact_revision() > 0 {
                        return Ok(message.compact_revision());
                    }
                }
                let ended = "the watch ended before it said what is compacted";
                Err(etcd_client::Error::WatchError(ended.to_owned()))
            })
            .await;
        match bound {
            Ok(bound) => StorageError::Compacted {
                requested,
                compacted: wire::revision(bound),
            },
            Err(failure) => failure.into(),
        }
    }

    /// The error for a failed request that named a revision.
    pub(super) async fn error(&self, failure: Failure, requested: Revision) -> StorageError {
        match failure {
            Failure::Compacted => self.compacted(requested).await,
            Failure::Gone { current } => StorageError::Compacted {
                requested,
                compacted: current,
            },
            Failure::Future => match self.current_revision().await {
                Ok(current) if requested > current && requested <= self.past.gone() => {
                    StorageError::Compacted {
                        requested,
                        compacted: current,
                    }
                }
                Ok(current) => StorageError::Future { requested, current },
                Err(failure) => failure.into(),
            },
            failure => failure.into(),
        }
    }

    async fn read(&self, prefix: &str, after: Revision, upto: Revision) -> Result<Replay, Failure> {
        let member = self.members.current();
        let replay = self
            .read_from(Arc::clone(&member), prefix, after, upto)
            .await;
        if replay.as_ref().is_err_and(Failure::is_passing) {
            self.members.leave(&member);
        }
        let replay = replay?;
        // See the live watch: etcd accepts a watch from the compacted revision itself, whose change may be gone.
        self.check_kept(after).await?;
        Ok(replay)
    }

    async fn read_from(
        &self,
        member: Arc<super::members::Member>,
        prefix: &str,
        after: Revision,
        upto: Revision,
    ) -> Result<Replay, Failure> {
        let generations = self.past.generations();
        let mut changes = Changes::open(member, prefix, after).await?;
        let mut replay = Replay {
            events: Vec::new(),
            reached: after,
        };
        let mut heard_at = Instant::now();
        while replay.reached < upto && replay.events.len() < REPLAY_STEP {
            if generations.has_changed().unwrap_or(true) {
                return Err(another());
            }
            let Ok(heard) = timeout(ASK_AGAIN, changes.next()).await else {
                if heard_at.elapsed() >= SILENCE {
                    return Err(changes.member.silent(SILENCE));
                }
                changes.request_progress().await?;
                continue;
            };
            match heard? {
                Heard::Alive => changes.request_progress().await?,
                Heard::Progress(revision) => replay.reached = revision.min(upto),
                Heard::Changes(events) => {
                    let last = events.last().map_or(after, |event| event.revision);
                    replay.reached = last.min(upto);
                    let wanted = |event: &crate::Event| {
                        event.revision <= upto && event.key.starts_with(prefix)
                    };
                    replay.events.extend(events.into_iter().filter(wanted));
                }
            }
            heard_at = Instant::now();
        }
        Ok(replay)
    }
}

#[async_trait]
impl crate::feed::History for History {
    async fn replay(
        &self,
        prefix: &str,
        after: Revision,
        upto: Revision,
    ) -> Result<Replay, StorageError> {
        if upto <= Revision(1) {
            return Ok(Replay {
                events: Vec::new(),
                reached: upto,
            });
        }
        // See `check_kept`.
        let from = after.max(Revision(1));
        loop {
            match self.read(prefix, from, upto).await {
                Ok(replay) => return Ok(replay),
                Err(failure) if failure.is_passing() && !self.closed.load(Ordering::Relaxed) => {
                    tracing::debug!(%failure, "retrying to read history");
                    sleep(PAUSE).await;
                }
                Err(failure) => return Err(self.error(failure, after).await),
            }
        }
    }
}
