//! One watch of one member: what it says, made whole and believed only as far as its version allows.
//!
//! Of a member whose progress is believed, the changes below a prefix are watched, and progress fills the time between
//! them. Of an older one everything is watched: every revision of etcd has a change of some key, so the changes
//! themselves tell how far the watch has come.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{WatchOptions, WatchRequestSender, WatchResponseStream};
use tokio::time::timeout;

use super::failure::Failure;
use super::members::Member;
use super::wire::{self, Range};
use crate::{Event, Revision};

/// A member that does not even say that a watch is open is as good as gone.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);

/// What a watch says.
#[derive(Debug)]
pub(super) enum Heard {
    /// Changes, all of each revision, in order.
    Changes(Vec<Event>),
    /// Every change up to this revision has been heard.
    Progress(Revision),
    /// That it is there, and no more.
    Alive,
}

/// An open watch. Dropping it ends it.
pub(super) struct Changes {
    pub(super) member: Arc<Member>,
    requests: WatchRequestSender,
    responses: WatchResponseStream,
    reports_progress: bool,
    /// The parts of a message that is too large for one.
    fragments: Vec<Event>,
}

impl Changes {
    /// Watches what begins with `prefix`, or more than that, from the revision after `after` on.
    pub(super) async fn open(
        member: Arc<Member>,
        prefix: &str,
        after: Revision,
    ) -> Result<Self, Failure> {
        let reports_progress = member.reports_progress().await?;
        let range = match reports_progress {
            true => Range::of_prefix(prefix),
            false => Range::all(),
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

    /// What it says next. May be dropped and called again without losing anything.
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
            return Ok(match self.reports_progress {
                true => Heard::Progress(wire::header_revision(message.header.as_ref())),
                false => Heard::Alive,
            });
        }
        let events = message.events.into_iter().filter_map(wire::event);
        self.fragments.extend(events);
        Ok(match message.fragment {
            true => Heard::Alive,
            false => Heard::Changes(std::mem::take(&mut self.fragments)),
        })
    }

    /// Asks to be told the progress; an answer, whether it is believed or not, shows that the member is there.
    pub(super) async fn request_progress(&mut self) -> Result<(), Failure> {
        let asked = self.requests.request_progress().await;
        asked.map_err(|error| self.member.failure(&error))
    }

    fn ended(&self, why: &str) -> Failure {
        Failure::Lost(format!("etcd at {}: {why}", self.member.server))
    }
}
