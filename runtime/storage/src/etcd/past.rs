//! Detects that etcd was restored from a backup or emptied: it has then lost acknowledged writes, and its next
//! revisions stand for other changes.
//!
//! Every response that a quorum agreed to contains the cluster ID, the raft term and the revision; none of these can be
//! older than what was seen before the request was made, while etcd has the same history. A new term, which every
//! restart causes, or a watch that is opened again triggers one more check: whether the newest change that was seen is
//! still at its revision. So an older etcd is detected even if its revisions have caught up meanwhile.
//!
//! Not detected is an etcd that has caught up in the same cluster and the same or a later term, if the change to check
//! is compacted, exists again, or none was seen yet. Later requests also cannot tell whether a client's revision, from
//! which the new history continues, belongs to the old history; only clients that watched through this server are told.

use std::sync::Arc;

use bytes::Bytes;
use etcd_client::proto::PbResponseHeader;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::failure::Failure;
use super::wire;
use crate::feed::{Change, Feed};
use crate::{Event, EventKind, Revision, StorageError};

/// The state of etcd as it is known at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Number of times that etcd's history was found to be replaced.
    generation: u64,
    cluster: u64,
    term: u64,
    revision: Revision,
}

/// A change that must exist as long as etcd has the same history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Witness {
    pub(super) key: String,
    pub(super) value: Bytes,
    pub(super) revision: Revision,
}

/// The result of checking a response of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The same history, as far as the response shows.
    Same,
    /// The term has changed: this change must be looked up.
    LookFor(Witness),
    /// Another history; all watches are ended now.
    Another,
}

/// The known state of etcd, and the feed that depends on it.
pub(super) struct Past {
    /// Lock order: taken before the lock of the feed.
    state: Mutex<State>,
    feed: Arc<Feed>,
    /// The revision of the feed.
    reached: watch::Sender<Revision>,
    generation: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    seen: Seen,
    /// The term in which the witness was last seen.
    looked_in: u64,
    witness: Option<Witness>,
    /// The newest revision of a history that is gone.
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

    /// The known state now. It must be read before a request whose response is judged.
    pub(super) fn seen(&self) -> Seen {
        self.state.lock().seen
    }

    /// Number of times that etcd's history was replaced, now and after every change.
    pub(super) fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// The newest revision of a history that is gone.
    pub(super) fn gone(&self) -> Revision {
        self.state.lock().gone
    }

    /// Checks a response that a quorum agreed to.
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
            // A response of the old etcd, or of the new one before it was detected.
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

    /// The change to look up in an etcd that may have another history.
    pub(super) fn witness(&self) -> Option<Witness> {
        self.state.lock().witness.clone()
    }

    /// Reports whether the witness was found, by the response to a request made at `before`.
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

    /// Remembers an entry as the witness.
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

    /// The revision of the feed, with its generation.
    pub(super) fn published(&self) -> (u64, Revision) {
        let state = self.state.lock();
        (state.seen.generation, self.feed.published())
    }

    /// Publishes changes of this generation of etcd.
    ///
    /// # Errors
    /// When etcd's history was found to be replaced meanwhile.
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

    /// Moves the feed on to a revision; watchers that are behind read the changes before it from history.
    pub(super) fn skip_to(&self, generation: u64, upto: Revision) {
        let state = self.state.lock();
        if state.seen.generation == generation {
            self.feed.skip_to(upto);
            self.reached.send_replace(upto);
        }
    }

    /// Starts a new generation: every watch ends, and what was known of the old one is dropped.
    fn begin_anew(&self, state: &mut State, now: Seen) {
        let seen = state.seen.revision.max(self.feed.published());
        tracing::error!(
            %seen, at = %now.revision, cluster = format!("{:x}", now.cluster), was = format!("{:x}", state.seen.cluster),
            "etcd was restored or emptied and acknowledged writes are lost; ending watches and refilling caches"
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

/// The failure of requests that were sent to an etcd whose history is gone.
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

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;
    use crate::WatchStart;
    use crate::feed::{History, Replay};

    fn header(cluster_id: u64, raft_term: u64, revision: i64) -> PbResponseHeader {
        PbResponseHeader {
            cluster_id,
            raft_term,
            revision,
            ..PbResponseHeader::default()
        }
    }

    /// The state after etcd has reported its revision once.
    fn known() -> Past {
        let feed = Feed::new(Revision(0));
        let past = Past::new(feed, watch::Sender::new(Revision(0)));
        let first = past.judge(past.seen(), Some(&header(1, 2, 10)));
        assert_eq!(first, Verdict::Same);
        past
    }

    fn put(key: &str, revision: u64) -> Event {
        Event {
            kind: EventKind::Created,
            key: key.to_owned(),
            value: Bytes::from_static(b"1"),
            previous: None,
            revision: Revision(revision),
        }
    }

    #[test]
    fn an_answer_that_is_behind_is_of_another_etcd() {
        for ((cluster, term, revision), expected) in [
            ((1, 2, 10), Verdict::Same),
            ((1, 2, 11), Verdict::Same),
            // An election.
            ((1, 3, 10), Verdict::Same),
            ((1, 2, 9), Verdict::Another),
            ((1, 3, 9), Verdict::Another),
            ((1, 1, 11), Verdict::Another),
            ((4, 3, 11), Verdict::Another),
        ] {
            let past = known();
            let answer = header(cluster, term, revision);
            let verdict = past.judge(past.seen(), Some(&answer));
            assert_eq!(verdict, expected, "{cluster} {term} {revision}");
            // The replacement is reported once.
            let again = past.judge(past.seen(), Some(&answer));
            assert_eq!(again, Verdict::Same, "{cluster} {term} {revision}");
        }
    }

    #[test]
    fn an_answer_is_compared_with_what_was_seen_before_it_was_asked_for() {
        let past = known();
        let before = past.seen();
        assert_eq!(past.judge(before, Some(&header(1, 3, 20))), Verdict::Same);
        // Overtaken by the response above.
        assert_eq!(past.judge(before, Some(&header(1, 2, 15))), Verdict::Same);
        assert_eq!(
            past.judge(past.seen(), Some(&header(1, 3, 15))),
            Verdict::Another
        );
        // Responses to requests from before the replacement say nothing about the new history.
        assert_eq!(past.judge(before, Some(&header(1, 3, 20))), Verdict::Same);
        assert_eq!(past.seen().revision, Revision(15));
    }

    #[test]
    fn a_new_term_is_a_reason_to_look_for_the_newest_change() {
        let past = known();
        let (generation, _) = past.published();
        past.publish(generation, vec![put("/a", 12)], Revision(12))
            .unwrap();
        let witness = past.witness().unwrap();
        assert_eq!(
            (&*witness.key, witness.revision),
            ("/a", Revision(12)),
            "the newest"
        );
        let look = Verdict::LookFor(witness);
        let answer = header(1, 3, 12);
        for _ in 0..2 {
            assert_eq!(past.judge(past.seen(), Some(&answer)), look);
        }
        past.found(true, past.seen(), Some(&answer));
        assert_eq!(past.judge(past.seen(), Some(&answer)), Verdict::Same);
        assert_eq!(past.seen().generation, 0);
        let before = past.seen();
        past.found(false, before, Some(&header(1, 4, 30)));
        assert_eq!(past.seen().generation, 1);
        assert_eq!(past.witness(), None);
        // Requested before the replacement.
        past.remember(before, "/b", &Bytes::new(), Revision(40));
        past.found(false, before, Some(&header(1, 4, 31)));
        assert_eq!((past.seen().generation, past.witness()), (1, None));
    }

    /// A history that is never read.
    struct Unread;

    #[async_trait]
    impl History for Unread {
        async fn replay(&self, _: &str, _: Revision, _: Revision) -> Result<Replay, StorageError> {
            Err(StorageError::Unavailable("it is not read".to_owned()))
        }
    }

    #[tokio::test]
    async fn another_etcd_ends_watches_and_publishes_nothing_of_the_old_one() {
        let past = known();
        let mut generations = past.generations();
        let (generation, _) = past.published();
        past.publish(generation, vec![put("/a", 20)], Revision(20))
            .unwrap();
        let mut watch = past.feed.watch("/", WatchStart::Now, Arc::new(Unread));
        past.judge(past.seen(), Some(&header(1, 2, 5)));
        assert!(generations.has_changed().unwrap());
        let restored = StorageError::Restored {
            seen: Revision(20),
            current: Revision(5),
        };
        assert_eq!(watch.next().now_or_never(), Some(Some(Err(restored))));
        assert_eq!(watch.next().now_or_never(), Some(None));
        assert_eq!(past.gone(), Revision(20));
        let late = past.publish(generation, vec![put("/a", 21)], Revision(21));
        assert_eq!(late, Err(another()));
        past.skip_to(generation, Revision(22));
        assert_eq!(past.published(), (generation + 1, Revision(5)));
        assert_eq!(*past.reached.borrow(), Revision(5));
        past.publish(generation + 1, vec![put("/a", 6)], Revision(6))
            .unwrap();
        // The greatest revision that was ever seen is kept.
        past.judge(past.seen(), Some(&header(7, 2, 6)));
        assert_eq!(past.gone(), Revision(20));
        assert_eq!(*generations.borrow_and_update(), 2);
    }
}
