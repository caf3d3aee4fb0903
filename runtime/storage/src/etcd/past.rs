//! Whether etcd is still the one that it was: one that is restored from a backup, or emptied, has lost what it
//! acknowledged, and its next revisions stand for something else.
//!
//! Every answer that a majority agreed to tells the cluster, the term of the newest change and the revision; none of
//! these is behind what was told before the request was made, while etcd is the same. A new term, which every restart
//! brings, and a watch that is opened again are reason to look once more at the newest change that was seen: whether it is
//! still there at its revision. So an etcd that came back older is also noticed when it has caught up meanwhile.
//!
//! Not noticed is one that has caught up in the same cluster and the same term or a later one, where the change that
//! would tell is compacted or is there again, or none was seen yet. Nor do requests after that know whether a client's
//! revision, from which the new history goes on, is of the past that is gone: those who watched through this server are
//! told.

use std::sync::Arc;

use bytes::Bytes;
use etcd_client::proto::PbResponseHeader;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::failure::Failure;
use super::wire;
use crate::feed::{Change, Feed};
use crate::{Event, EventKind, Revision, StorageError};

/// What is known of etcd at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Counts how often etcd turned out to be another one.
    generation: u64,
    cluster: u64,
    term: u64,
    revision: Revision,
}

/// A change that must be there as long as etcd is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Witness {
    pub(super) key: String,
    pub(super) value: Bytes,
    pub(super) revision: Revision,
}

/// What an answer says of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the same, as far as can be told.
    Same,
    /// It has another term: this is to be looked for.
    LookFor(Witness),
    /// It is another one, of which everybody is told now.
    Another,
}

/// What was seen of etcd, and what follows from it.
pub(super) struct Past {
    /// Lock order: before that of the feed.
    state: Mutex<State>,
    feed: Arc<Feed>,
    /// How far the feed is.
    reached: watch::Sender<Revision>,
    generation: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    seen: Seen,
    /// The term in which the witness was seen last.
    looked_in: u64,
    witness: Option<Witness>,
    /// The newest revision of a past that is gone.
    gone: Revision,
}

impl Past {
    pub(super) fn new(feed: Arc<Feed>, reached: watch::Sender<Revision>) -> Self {
        Self {
            state: Mutex::default(),
            feed,
            reached,
            generation: watch::Sender::new(0),
        }
    }

    /// What is known now: to be asked for before a request is made whose answer is judged.
    pub(super) fn seen(&self) -> Seen {
        self.state.lock().seen
    }

    /// How often etcd turned out to be another one, now and whenever it does.
    pub(super) fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// The newest revision of a past that is gone.
    pub(super) fn gone(&self) -> Revision {
        self.state.lock().gone
    }

    /// Judges an answer that a majority agreed to.
    pub(super) fn judge(&self, before: Seen, header: Option<&PbResponseHeader>) -> Verdict {
        let Some(header) = header else {
            return Verdict::Same;
        };
        let now = Seen {
            generation: before.generation,
            cluster: header.cluster_id,
            term: header.raft_term,
            revision: wire::header_revision(Some(header)),
        };
        let mut state = self.state.lock();
        if state.seen.generation != before.generation {
            // Of an etcd that is known to be gone, or of the new one before that was known.
            return Verdict::Same;
        }
        let is_first = before.cluster == 0;
        let is_behind = now.term < before.term || now.revision < before.revision;
        if !is_first && (now.cluster != before.cluster || is_behind) {
            self.begin_anew(&mut state, now);
            return Verdict::Another;
        }
        state.seen.cluster = now.cluster;
        state.seen.term = state.seen.term.max(now.term);
        state.seen.revision = state.seen.revision.max(now.revision);
        if state.looked_in == now.term {
            return Verdict::Same;
        }
        match &state.witness {
            Some(witness) => Verdict::LookFor(witness.clone()),
            None => {
                state.looked_in = now.term;
                Verdict::Same
            }
        }
    }

    /// What to look for in an etcd that may be another one.
    pub(super) fn witness(&self) -> Option<Witness> {
        self.state.lock().witness.clone()
    }

    /// Tells whether the witness is there, as the answer to a request made at this time says.
    pub(super) fn found(&self, is_there: bool, before: Seen, header: Option<&PbResponseHeader>) {
        let mut state = self.state.lock();
        if state.seen.generation != before.generation {
            return;
        }
        let term = header.map_or(state.seen.term, |header| header.raft_term);
        if is_there {
            state.looked_in = term;
            return;
        }
        let now = Seen {
            cluster: header.map_or(state.seen.cluster, |header| header.cluster_id),
            term,
            revision: wire::header_revision(header),
            ..before
        };
        self.begin_anew(&mut state, now);
    }

    /// Remembers an entry as what must be there.
    pub(super) fn remember(&self, before: Seen, key: &str, value: &Bytes, revision: Revision) {
        let mut state = self.state.lock();
        let is_newer = |witness: &Witness| witness.revision < revision;
        if state.seen.generation == before.generation && state.witness.as_ref().is_none_or(is_newer)
        {
            state.witness = Some(Witness {
                key: key.to_owned(),
                value: value.clone(),
                revision,
            });
        }
    }

    /// Where the feed is, and of which etcd.
    pub(super) fn published(&self) -> (u64, Revision) {
        let state = self.state.lock();
        (state.seen.generation, self.feed.published())
    }

    /// Publishes changes of the etcd of this generation.
    ///
    /// # Errors
    /// When it turned out to be another one meanwhile.
    pub(super) fn publish(
        &self,
        generation: u64,
        events: Vec<Event>,
        upto: Revision,
    ) -> Result<(), Failure> {
        let mut state = self.state.lock();
        if state.seen.generation != generation {
            return Err(another());
        }
        if upto <= self.feed.published() {
            return Ok(());
        }
        let put = events
            .iter()
            .rfind(|event| event.kind != EventKind::Deleted);
        if let Some(event) = put {
            state.witness = Some(Witness {
                key: event.key.clone(),
                value: event.value.clone(),
                revision: event.revision,
            });
        }
        let loaded = |event| Change::Loaded(Arc::new(event));
        let changes: Vec<Change> = events.into_iter().map(loaded).collect();
        self.feed.publish(&changes, upto);
        self.reached.send_replace(upto);
        Ok(())
    }

    /// The feed goes on from a revision; watchers that stayed behind look for what was before in history.
    pub(super) fn skip_to(&self, generation: u64, upto: Revision) {
        let state = self.state.lock();
        if state.seen.generation == generation {
            self.feed.skip_to(upto);
            self.reached.send_replace(upto);
        }
    }

    /// Etcd is another one: every watch ends, and what was seen counts no more.
    fn begin_anew(&self, state: &mut State, now: Seen) {
        let seen = state.seen.revision.max(self.feed.published());
        tracing::error!(
            %seen, at = %now.revision, cluster = format!("{:x}", now.cluster), was = format!("{:x}", state.seen.cluster),
            "etcd is not the one it was: it was restored or emptied, and what it acknowledged is gone; watches end, and \
             caches are filled anew"
        );
        let generation = state.seen.generation + 1;
        *state = State {
            seen: Seen { generation, ..now },
            looked_in: now.term,
            witness: None,
            gone: state.gone.max(seen),
        };
        let error = StorageError::Restored {
            seen,
            current: now.revision,
        };
        self.feed.begin_anew(now.revision, &error);
        self.reached.send_replace(now.revision);
        self.generation.send_replace(generation);
    }
}

/// The failure of what was under way with an etcd that is gone.
pub(super) fn another() -> Failure {
    Failure::Refused("etcd is not the one it was".to_owned())
}

impl std::fmt::Debug for Past {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Past")
            .field("state", &*self.state.lock())
            .finish_non_exhaustive()
    }
}
