//! Watching clients: each lists or streams its selection, is cut off from time to time, resumes, and keeps a log of all
//! events and a store with their result, as informers do.

use std::collections::BTreeMap;
use std::sync::Arc;

use apiloom_tests::{Client, Watch};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::PATIENCE;
use crate::list::{Lister, Listing, Wanted};
use crate::model::{Revision, cut};
use crate::objects::{Form, Key, is_alone, settle_table};
use crate::plan::{Fresh, Plan};
use crate::random::{Random, pick};
use crate::site::{Place, next_place};
use crate::writer::Ledger;

/// The start of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// After a revision that the client saw in this era.
    After { era: usize, revision: Revision },
    /// With the objects of a state that is at least as new as this.
    Objects {
        at_least: Revision,
        deletions: usize,
    },
}

/// An item of a stream.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Event {
        kind: String,
        revision: Revision,
        object: Value,
    },
    Bookmark {
        revision: Revision,
        ends_objects: bool,
    },
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The client closed it.
    Cut,
    /// The client has reached the end of the run.
    Done,
    /// The server closed it or stopped.
    Closed,
    /// The server reported that the revision is compacted.
    Expired,
    /// The server is behind the revision for longer than the timeout.
    Behind,
    /// The client has not reached the end of the run in time.
    Late,
    /// Anything else.
    Wrong(String),
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) era: usize,
    pub(crate) start: Start,
    pub(crate) items: Vec<Item>,
    /// For each item of a table whether it had columns.
    pub(crate) columns: Vec<bool>,
    pub(crate) end: End,
}

impl Stream {
    /// The newest revision that the client has seen, or at which it began.
    fn reached(&self) -> Option<Revision> {
        let begin = match self.start {
            Start::After { era, revision } if era == self.era => Some(revision),
            _ => None,
        };
        // The initial objects are in key order.
        let told = self.items.iter().map(|item| match item {
            Item::Event { revision, .. } | Item::Bookmark { revision, .. } => *revision,
        });
        told.chain(begin).max()
    }
}

/// Everything that a client observed.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) plan: Plan,
    pub(crate) lists: Vec<Listing>,
    pub(crate) streams: Vec<Stream>,
    /// The client's current objects, in the form that it requested, and their revision.
    pub(crate) store: BTreeMap<Key, Value>,
    pub(crate) reached: Revision,
}

/// When a client may stop: after it has seen this revision; `None` while there are more writes.
pub(crate) type Closing = watch::Receiver<Option<Vec<Revision>>>;

/// A client that watches.
pub(crate) struct Watcher {
    pub(crate) place: watch::Receiver<Place>,
    /// The ledger of the current era.
    pub(crate) ledger: watch::Receiver<Arc<Ledger>>,
    pub(crate) closing: Closing,
    pub(crate) random: Random,
    pub(crate) log: Log,
    /// Where to resume; `None` at first.
    position: Option<Position>,
    /// The newest event that is in the store. A client that resumes before it must get it again.
    applied: Revision,
}

/// Revisions that a client may resume from, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    era: usize,
    revisions: Vec<Revision>,
}

impl Watcher {
    pub(crate) fn new(
        plan: Plan,
        random: Random,
        place: watch::Receiver<Place>,
        ledger: watch::Receiver<Arc<Ledger>>,
        closing: Closing,
    ) -> Self {
        let log = Log {
            plan,
            lists: Vec::new(),
            streams: Vec::new(),
            store: BTreeMap::new(),
            reached: 0,
        };
        Self {
            place,
            ledger,
            closing,
            random,
            log,
            position: None,
            applied: 0,
        }
    }

    /// Follows its selection to the end of the run.
    pub(crate) async fn run(mut self) -> Log {
        let (ledger, count) = (self.ledger.borrow().clone(), self.log.plan.begins_after);
        tokio::select! {
            () = ledger.wait(count) => {}
            // Fewer writes were made than it waits for.
            _ = self.closing.wait_for(Option::is_some) => {}
        }
        loop {
            let place = self.place.borrow().clone();
            if self.position.is_none() && self.log.plan.fresh == Fresh::List {
                if !self.list(&place).await {
                    continue;
                }
                if self.is_done(self.log.reached) {
                    return self.log;
                }
            }
            let end = self.stream(&place).await;
            match end {
                End::Done | End::Late | End::Wrong(_) => return self.log,
                End::Expired => self.position = None,
                // Without further changes a new bookmark may have the same revision as the one before; a list is
                // current.
                End::Closed if self.closing.borrow().is_some() => self.position = None,
                End::Cut | End::Closed | End::Behind => {}
            }
            if self.log.plan.fresh == Fresh::Everything {
                self.position = None;
            }
        }
    }

    fn is_done(&self, reached: Revision) -> bool {
        let number = self.log.plan.number as usize;
        (self.closing.borrow().as_ref()).is_some_and(|closing| reached >= closing[number])
    }

    fn client(&mut self, place: &Place) -> Client {
        let random = self.random.below(2);
        let server = self.log.plan.server.unwrap_or(random) % place.servers.len();
        let address = &place.servers[server];
        if self.log.plan.is_http1 {
            address.http1.clone()
        } else {
            address.http2.clone()
        }
    }

    /// Lists the objects; returns false if the server stopped.
    async fn list(&mut self, place: &Place) -> bool {
        let ledger = self.ledger.borrow().clone();
        let is_closing = self.closing.borrow().is_some();
        let lister = Lister {
            place: place.clone(),
            ledger,
            interest: self.log.plan.interest.clone(),
            form: self.log.plan.form,
        };
        let wanted = match (self.log.plan.number, is_closing) {
            // The list must show everything.
            (0, _) => Wanted::Exactly(lister.ledger.first()),
            (_, true) => Wanted::Present,
            (_, false) => Wanted::random(&mut self.random, &lister.ledger),
        };
        let Some(listing) = lister.list(wanted, &mut self.random).await else {
            self.relocate(place).await;
            return false;
        };
        self.log.store = listing.objects().collect();
        self.applied = 0;
        self.log.reached = listing.revision;
        self.position = Some(Position {
            era: place.era,
            revisions: vec![listing.revision],
        });
        self.log.lists.push(listing);
        true
    }

    async fn relocate(&mut self, known: &Place) {
        let next = next_place(&mut self.place, known).await;
        assert!(next.is_some(), "a server went away: {:?}", self.log.plan);
    }

    /// Opens a stream and follows it.
    async fn stream(&mut self, place: &Place) -> End {
        let client = self.client(place);
        let ledger = self.ledger.borrow().clone();
        let (start, query) = match &self.position {
            None => {
                let is_stream = self.log.plan.fresh == Fresh::Stream;
                let newest = ledger.newest();
                let (mut query, at_least, deletions) = match self.random.below(3) {
                    0 => (String::new(), newest, ledger.deletions()),
                    1 if is_stream => (format!("&resourceVersion={newest}"), newest, 0),
                    // Any state is accepted.
                    _ => ("&resourceVersion=0".to_owned(), 0, 0),
                };
                if is_stream {
                    query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
                }
                let start = Start::Objects {
                    at_least,
                    deletions,
                };
                (start, query)
            }
            Some(position) => {
                // Usually from the last revision that it saw.
                let back = pick(&mut self.random, &[0, 0, 0, 1, 4]);
                let last = position.revisions.len() - 1;
                let revision = position.revisions[last.saturating_sub(back)];
                let era = position.era;
                (
                    Start::After { era, revision },
                    format!("&resourceVersion={revision}"),
                )
            }
        };
        if let (Start::After { revision, .. }, Some(position)) = (start, &mut self.position) {
            position.revisions.retain(|known| *known <= revision);
        }
        let bookmarks = if self.log.plan.is_brief {
            "&allowWatchBookmarks=true&timeoutSeconds=3"
        } else {
            ""
        };
        let (url, form) = (self.log.plan.interest.watch_url(), self.log.plan.form);
        let url = format!("{url}{query}{bookmarks}{}", form.query());
        let accept = format!("application/json{}", form.parameters(false));
        let watch = match client.try_watch_as(&url, &accept).await {
            Ok(watch) => watch,
            Err(_) => {
                self.relocate(place).await;
                return End::Closed;
            }
        };
        let is_fresh = matches!(start, Start::Objects { .. });
        self.log.streams.push(Stream {
            era: place.era,
            start,
            items: Vec::new(),
            columns: Vec::new(),
            end: End::Cut,
        });
        if is_fresh {
            self.log.store.clear();
            self.applied = 0;
        }
        let end = self.follow(watch, place.era).await;
        self.log.streams.last_mut().unwrap().end = end.clone();
        end
    }

    /// Reads a stream until it ends, is cut off, or reaches the end of the run.
    async fn follow(&mut self, mut watch: Watch, era: usize) -> End {
        let is_cut = self.log.plan.cuts > 0 && self.closing.borrow().is_none();
        let mut left = if is_cut {
            self.random.below(12)
        } else {
            usize::MAX
        };
        self.log.plan.cuts -= usize::from(is_cut);
        // It may stop only after a complete state: not among the initial objects.
        let mut is_live = self.position.is_some() || self.log.plan.fresh == Fresh::Everything;
        let begin = Instant::now();
        loop {
            let stream = self.log.streams.last().unwrap();
            if let Some(reached) = stream.reached().filter(|_| is_live)
                && reached >= self.applied
                && self.is_done(reached)
            {
                self.log.reached = reached;
                return End::Done;
            }
            if left == 0 {
                return End::Cut;
            }
            let line = tokio::select! {
                line = watch.line_or_end() => line,
                // Check again whether this is the end.
                Ok(()) = self.closing.changed() => continue,
                () = sleep_until(begin + PATIENCE) => return End::Late,
            };
            let Ok(Some(line)) = line else {
                return End::Closed;
            };
            let event: Value = match serde_json::from_str(&line) {
                Ok(event) => event,
                Err(error) => return End::Wrong(format!("{error}: {}", cut(&line))),
            };
            match self.take(event, era) {
                Ok(ends_objects) => is_live |= ends_objects,
                Err(end) => return end,
            }
            left -= 1;
        }
    }

    /// Handles an event; returns whether it ends the initial objects.
    fn take(&mut self, mut event: Value, era: usize) -> Result<bool, End> {
        let wrong = |text: String| Err(End::Wrong(text));
        let plan = &self.log.plan;
        let mut object = event["object"].take();
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        if kind == "ERROR" {
            return match object["code"].as_u64() {
                Some(410) => Err(End::Expired),
                Some(504) => Err(End::Behind),
                _ => wrong(object.to_string()),
            };
        }
        let stream = self.log.streams.last_mut().unwrap();
        if let Form::Table(..) = plan.form {
            match settle_table(plan.interest.resource, &mut object) {
                Ok(columns) => stream.columns.push(columns),
                Err(error) => return wrong(error),
            }
        }
        let revision = object["metadata"]["resourceVersion"].as_str();
        let Some(revision) = revision.and_then(|text| text.parse().ok()) else {
            return wrong(format!("no revision: {}", cut(&object.to_string())));
        };
        let shown = plan.form.object(&object);
        if kind == "BOOKMARK" {
            let annotations = shown.map(|shown| &shown["metadata"]["annotations"]);
            let ends_objects =
                annotations.is_some_and(|all| all["k8s.io/initial-events-end"] == "true");
            stream.items.push(Item::Bookmark {
                revision,
                ends_objects,
            });
            self.note_position(era, revision);
            return Ok(ends_objects);
        }
        self.applied = self.applied.max(revision);
        if let Some(shown) = shown {
            let key = Key::of(plan.interest.resource, shown);
            match kind.as_str() {
                "DELETED" => drop(self.log.store.remove(&key)),
                _ => drop(self.log.store.insert(key, shown.clone())),
            }
        }
        // The last state of a deleted object does not show which other objects were deleted in the same revision.
        let is_alone = kind != "DELETED" && shown.is_some_and(is_alone);
        stream.items.push(Item::Event {
            kind,
            revision,
            object,
        });
        if is_alone && self.position.is_some() {
            self.note_position(era, revision);
        }
        Ok(false)
    }

    fn note_position(&mut self, era: usize, revision: Revision) {
        match &mut self.position {
            Some(position) if position.era == era => {
                if position.revisions.last() < Some(&revision) {
                    position.revisions.push(revision);
                }
            }
            position => {
                *position = Some(Position {
                    era,
                    revisions: vec![revision],
                });
            }
        }
    }
}
