//! The bytes of one watch: events in their order, bookmarks, pieces that end anywhere, and an end of some kind.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::TransportError;
use futures_util::future::pending;
use futures_util::stream::{Stream, StreamExt, unfold};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::world::{World, chance, status};

/// A line of a watch, or how it ends.
#[derive(Debug)]
pub(crate) enum Line {
    Event(Value),
    /// An event of which only a part is sent, before the connection breaks.
    Half(Value),
    /// The connection breaks between two events.
    Break,
    /// Nothing follows, and the connection stays open.
    Silence,
}

fn event(event_type: &str, object: Value) -> Line {
    Line::Event(json!({"type": event_type, "object": object}))
}

fn bookmark(version: u64, ends_initial_events: bool) -> Line {
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if ends_initial_events {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    event("BOOKMARK", json!({"metadata": metadata}))
}

struct Feed {
    world: Arc<World>,
    ready: VecDeque<Line>,
    /// The version up to which events were sent.
    sent: u64,
    end: Instant,
    restarts: u64,
    is_over: bool,
}

impl Feed {
    /// The state, in any order, then some changes, then the mark.
    fn begin_with_state(&mut self, oldest: u64) {
        let (at, objects) = {
            let data = self.world.data.lock();
            let oldest = if oldest == 0 { data.version } else { oldest };
            let at = self.world.pick(oldest..data.version + 1);
            (at, data.at(at))
        };
        let mut lines: Vec<Line> = objects
            .values()
            .map(|state| event("ADDED", state.json()))
            .collect();
        self.world.random.lock().shuffle(&mut lines);
        self.ready.extend(lines);
        self.sent = at;
        let newest = self.world.data.lock().version;
        let until = self.world.pick(at..newest + 1);
        self.send_changes(until);
        self.ready.push_back(bookmark(self.sent, true));
    }

    fn send_changes(&mut self, until: u64) {
        let data = self.world.data.lock();
        let sent = self.sent;
        let changes = data.log.iter();
        let changes = changes.filter(|c| c.state.version > sent && c.state.version <= until);
        let lines = changes.map(|change| event(change.event_type, change.state.json()));
        self.ready.extend(lines);
        self.sent = sent.max(until);
    }

    /// An end of some kind, at some moments.
    fn fault(&self) -> Option<Line> {
        let world = &self.world;
        if chance!(world, 1 in 25) {
            return Some(Line::Break);
        }
        if chance!(world, 1 in 25) {
            let object = status(410, "Expired", json!({}));
            return Some(event("ERROR", object));
        }
        if chance!(world, 1 in 40) {
            let object = status(500, "InternalError", json!({}));
            return Some(event("ERROR", object));
        }
        chance!(world, 1 in 100).then_some(Line::Silence)
    }

    async fn next(mut self) -> Option<(Line, Self)> {
        if self.is_over {
            return None;
        }
        loop {
            if let Some(fault) = self.fault() {
                self.is_over = true;
                return Some((fault, self));
            }
            if let Some(line) = self.ready.pop_front() {
                self.world.pause(100).await;
                if chance!(self.world, 1 in 60) {
                    let Line::Event(line) = line else { continue };
                    self.is_over = true;
                    return Some((Line::Half(line), self));
                }
                return Some((line, self));
            }
            let (mut newest, mut restarts) = (
                self.world.newest.subscribe(),
                self.world.restarts.subscribe(),
            );
            let (sent, before) = (self.sent, self.restarts);
            let bookmark_at = Instant::now() + Duration::from_secs(self.world.pick(5..90));
            let has_changes = tokio::select! {
                biased;
                _ = restarts.wait_for(|restarts| *restarts != before) => {
                    self.is_over = true;
                    return Some((Line::Break, self));
                }
                () = sleep_until(self.end) => return None,
                _ = newest.wait_for(|newest| *newest > sent) => true,
                () = sleep_until(bookmark_at) => false,
            };
            if has_changes {
                // The cache of a replica is behind for a while.
                self.world.pause(2000).await;
                let newest = self.world.data.lock().version;
                let until = self.world.pick(sent + 1..newest + 1);
                self.send_changes(until);
            } else {
                self.ready.push_back(bookmark(sent, false));
            }
        }
    }
}

/// The lines of a watch that begins after a version, or with the state.
pub(crate) fn lines(
    world: Arc<World>,
    version: u64,
    streams: bool,
    timeout: Duration,
) -> impl Stream<Item = Line> + Send {
    let mut life = timeout;
    if chance!(world, 1 in 2) {
        life = Duration::from_millis(world.pick(0..60_000)).min(timeout);
    }
    let restarts = *world.restarts.borrow();
    let mut feed = Feed {
        world,
        ready: VecDeque::new(),
        sent: version,
        end: Instant::now() + life,
        restarts,
        is_over: false,
    };
    if streams {
        feed.begin_with_state(version);
    } else if version == 0 {
        // A server that ignores sendInitialEvents sends the state, and no mark.
        feed.begin_with_state(version);
        feed.ready.pop_back();
    }
    unfold(feed, Feed::next)
}

/// The bytes of lines, in pieces that end anywhere.
pub(crate) fn bytes(
    world: Arc<World>,
    lines: impl Stream<Item = Line> + Send + 'static,
) -> impl Stream<Item = Result<Vec<u8>, TransportError>> + Send {
    let pieces = lines.then(move |line| {
        let world = Arc::clone(&world);
        async move {
            let broken = || Err(TransportError::new("connection reset"));
            match line {
                Line::Event(line) => split(&world, format!("{line}\n").into_bytes()),
                Line::Half(line) => {
                    let mut text = line.to_string().into_bytes();
                    let length = usize::try_from(world.pick(1..text.len() as u64));
                    text.truncate(length.expect("a length"));
                    vec![Ok(text), broken()]
                }
                Line::Break => vec![broken()],
                Line::Silence => pending().await,
            }
        }
    });
    pieces.flat_map(futures_util::stream::iter)
}

fn split(world: &World, bytes: Vec<u8>) -> Vec<Result<Vec<u8>, TransportError>> {
    if world.pick(0..4) != 0 {
        return vec![Ok(bytes)];
    }
    let size = usize::try_from(world.pick(1..40)).expect("a size");
    bytes.chunks(size).map(|piece| Ok(piece.to_vec())).collect()
}
