//! One watch of one etcd member: its messages are reassembled, and its progress is used only if the member's version
//! reports it correctly.
//!
//! For a member with reliable progress, only the changes below the prefix are watched, and progress covers the time
//! between them. For an older member all keys are watched: every revision of etcd has a change of some key, so the
//! changes themselves tell how far the watch has come.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{WatchOptions, WatchRequestSender, WatchResponseStream};
use tokio::time::timeout;

use super::failure::Failure;
use super::members::Member;
use super::wire::{self, Range};
use crate::{Event, Revision};

/// Timeout for the message that a watch is open, after which the member counts as failed.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);

/// A message of a watch.
#[derive(Debug)]
pub(super) enum Heard {
    /// Changes in order, all changes of each revision together.
    Changes(Vec<Event>),
    /// Every change up to this revision has been received.
    Progress(Revision),
    /// A message without content: the member is alive.
    Alive,
}

/// An open watch. Dropping it ends it.
pub(super) struct Changes {
    pub(super) member: Arc<Member>,
    requests: WatchRequestSender,
    responses: WatchResponseStream,
    reports_progress: bool,
    /// The fragments of a message that is too large for one.
    fragments: Vec<Event>,
}

impl Changes {
    /// Watches keys with this prefix, or more, after the revision `after`.
    pub(super) async fn open(
        member: Arc<Member>,
        prefix: &str,
        after: Revision,
    ) -> Result<Self, Failure> {
        let reports_progress = member.reports_progress().await?;
        let range = if reports_progress {
            Range::of_prefix(prefix)
        } else {
            Range::all()
        };
        let options = WatchOptions::new()
            .with_range(range.end)
            .with_start_revision(wire::number(after).saturating_add(1))
            .with_prev_key()
            .with_progress_notify()
            .with_fragment();
        let mut client = member.watch();
        let stream = timeout(OPEN_PATIENCE, client.watch(range.from, Some(options)))
            .await
            .map_err(|_| member.silent(OPEN_PATIENCE))?
            .map_err(|error| member.failure(&error))?;
        let (requests, responses) = stream.split();
        Ok(Self {
            member,
            requests,
            responses,
            reports_progress,
            fragments: Vec::new(),
        })
    }

    /// The next message. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Heard, Failure> {
        let message = self.responses.message().await;
        let message = message
            .map_err(|error| self.member.failure(&error))?
            .ok_or_else(|| self.ended("the watch ended"))?;
        let message = message.0;
        if message.canceled {
            return Err(match message.compact_revision {
                0 => self.ended(&message.cancel_reason),
                _ => Failure::Compacted,
            });
        }
        if message.created {
            return Ok(Heard::Alive);
        }
        if message.events.is_empty() {
            return Ok(if self.reports_progress {
                Heard::Progress(wire::header_revision(message.header.as_ref()))
            } else {
                Heard::Alive
            });
        }
        let events = message.events.into_iter().filter_map(wire::event);
        self.fragments.extend(events);
        Ok(if message.fragment {
            Heard::Alive
        } else {
            Heard::Changes(std::mem::take(&mut self.fragments))
        })
    }

    /// Requests progress; the response, even if its revision is not used, shows that the member is alive.
    pub(super) async fn request_progress(&mut self) -> Result<(), Failure> {
        let asked = self.requests.request_progress().await;
        asked.map_err(|error| self.member.failure(&error))
    }

    fn ended(&self, why: &str) -> Failure {
        Failure::Lost(format!("etcd at {}: {why}", self.member.server))
    }
}
