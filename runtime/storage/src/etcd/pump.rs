//! The live watch of a store: one for all its watchers, reopened at the last revision after every failure.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use super::changes::{Changes, Heard};
use super::failure::Failure;
use super::history::History;
use super::members::Members;
use super::past::another;
use crate::Revision;

/// Idle time after which the watch is asked for its progress.
const IDLE: Duration = Duration::from_secs(1);

/// Idle time after which the watch counts as lost although it was asked.
const SILENCE: Duration = Duration::from_secs(6);

/// The pause between attempts to reopen the watch, growing while they fail.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Copies changes from etcd to the feed.
pub(super) struct Pump {
    pub(super) members: Arc<Members>,
    pub(super) history: Arc<History>,
    pub(super) prefix: String,
    /// Notified when a caller waits for the current revision.
    pub(super) wanted: Arc<Notify>,
}

impl Pump {
    /// Runs until the task is aborted.
    pub(super) async fn run(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let before = self.published();
            let failure = match self.follow().await {
                Err(Failure::Compacted) => self.skip_what_is_gone().await,
                Err(failure) => Err(failure),
                Ok(never) => match never {},
            };
            if let Err(failure) = failure {
                tracing::warn!(%failure, after = %self.published(), "the watch of etcd failed and is reopened");
            }
            pause = if self.published() > before {
                FIRST_PAUSE
            } else {
                (pause * 2).min(LONGEST_PAUSE)
            };
            sleep(pause).await;
        }
    }

    fn published(&self) -> Revision {
        self.history.past.published().1
    }

    /// Runs one watch until it fails.
    async fn follow(&self) -> Result<std::convert::Infallible, Failure> {
        let member = self.members.current();
        let followed = self.follow_member(Arc::clone(&member)).await;
        if followed.as_ref().is_err_and(Failure::is_passing) {
            self.members.leave(&member);
        }
        followed
    }

    async fn follow_member(
        &self,
        member: Arc<super::members::Member>,
    ) -> Result<std::convert::Infallible, Failure> {
        let past = &self.history.past;
        let mut generations = past.generations();
        let (generation, from) = past.published();
        let mut changes = Changes::open(member, &self.prefix, from).await?;
        self.history.look_again().await?;
        let mut heard_at = Instant::now();
        let mut asked_at = heard_at;
        let mut start_is_kept = false;
        loop {
            let heard = tokio::select! {
                heard = changes.next() => heard?,
                _ = generations.changed() => return Err(another()),
                () = self.wanted.notified() => {
                    asked_at = Instant::now();
                    changes.request_progress().await?;
                    continue;
                }
                () = sleep_until(heard_at.max(asked_at) + IDLE) => {
                    if heard_at.elapsed() >= SILENCE {
                        return Err(changes.member.silent(SILENCE));
                    }
                    asked_at = Instant::now();
                    changes.request_progress().await?;
                    continue;
                }
            };
            heard_at = Instant::now();
            // etcd accepts a watch from the compacted revision itself, whose change may be gone. If the revision is
            // still kept when the first message has arrived, it was kept when that message was made.
            if !start_is_kept && !matches!(heard, Heard::Alive) {
                self.history.check_kept(from).await?;
                start_is_kept = true;
            }
            match heard {
                Heard::Alive => {}
                Heard::Progress(revision) => past.publish(generation, Vec::new(), revision)?,
                Heard::Changes(events) => {
                    let upto = events.last().map_or(Revision(0), |event| event.revision);
                    past.publish(generation, events, upto)?;
                }
            }
        }
    }

    /// Moves the feed on to the current revision; watchers that are behind learn from history that it is compacted.
    async fn skip_what_is_gone(&self) -> Result<(), Failure> {
        let (generation, after) = self.history.past.published();
        let current = self.history.current_revision().await?;
        tracing::warn!(%after, %current, "changes were compacted before they were received");
        self.history.past.skip_to(generation, current);
        Ok(())
    }
}
