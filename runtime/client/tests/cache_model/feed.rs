//! The bytes of one watch: events in their order, bookmarks, pieces that end anywhere, and an end of some kind.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::TransportError;
use futures_util::future::pending;
use futures_util::stream::{BoxStream, Stream, StreamExt, iter, unfold};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::world::{Fault, World, chance, status};

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
            Fault::WatchBroken.count();
            return Some(Line::Break);
        }
        if chance!(world, 1 in 25) {
            Fault::ExpiredInStream.count();
            let object = status(410, "Expired", json!({}));
            return Some(event("ERROR", object));
        }
        if chance!(world, 1 in 40) {
            Fault::Internal.count();
            let object = status(500, "InternalError", json!({}));
            return Some(event("ERROR", object));
        }
        chance!(world, 1 in 100).then(|| {
            Fault::Silence.count();
            Line::Silence
        })
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
                    Fault::HalfLine.count();
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

type Piece = Result<Vec<u8>, TransportError>;

/// The bytes of lines, in pieces that end anywhere.
pub(crate) fn bytes(
    world: Arc<World>,
    lines: impl Stream<Item = Line> + Send + 'static,
) -> impl Stream<Item = Piece> + Send {
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
                    iter([Ok(text), broken()]).boxed()
                }
                Line::Break => iter([broken()]).boxed(),
                Line::Silence => pending().await,
            }
        }
    });
    pieces.flatten()
}

fn split(world: &Arc<World>, bytes: Vec<u8>) -> BoxStream<'static, Piece> {
    if chance!(world, 1 in 40) {
        Fault::SlowBytes.count();
        return slow(Arc::clone(world), bytes).boxed();
    }
    if world.pick(0..4) != 0 {
        return iter([Ok(bytes)]).boxed();
    }
    let size = usize::try_from(world.pick(1..40)).expect("a size");
    let pieces: Vec<Piece> = bytes.chunks(size).map(|piece| Ok(piece.to_vec())).collect();
    iter(pieces).boxed()
}

/// Some pieces with pauses between them, of several seconds in all.
pub(crate) fn slow(world: Arc<World>, bytes: Vec<u8>) -> impl Stream<Item = Piece> + Send {
    let size = bytes.len() / usize::try_from(world.pick(2..8)).expect("a number") + 1;
    let pieces: Vec<Piece> = bytes.chunks(size).map(|piece| Ok(piece.to_vec())).collect();
    iter(pieces).then(move |piece| {
        let world = Arc::clone(&world);
        async move {
            world.pause(3_000).await;
            piece
        }
    })
}
