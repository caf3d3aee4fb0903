//! A recorder: takes events without waiting, and writes them in a task.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use apiloom_meta::{MicroTime, Resource};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::correlator::{Correlator, Write};
use super::event::{EventType, NewEvent, ObjectReference};
use super::queue::EventQueue;
use super::sink::{EventError, EventSink};

/// The most attempts to write an event, and the time between them: those of client-go.
const MAX_ATTEMPTS: u32 = 12;
const RETRY: Duration = Duration::from_secs(10);
/// The most writes that wait for their next attempt while others go on. While there are so many, new events stay in the
/// queue.
const MAX_WAITING: usize = 100;
/// How often it is looked for series that ended.
const MAINTENANCE: Duration = Duration::from_secs(60);
/// How long events are written after the last recorder was dropped.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// What became of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecorderMetrics {
    /// Events and series that were written.
    pub written: u64,
    /// Events that were dropped because too many waited.
    pub dropped: u64,
    /// Events that were not written because there were many of the same object.
    pub limited: u64,
    /// Events and series that a server refused, or that could not be written for two minutes.
    pub failed: u64,
}

/// Reports what happens to objects. Clones write by the same task, which ends when the last one is dropped and writes what
/// waits for at most 5 s more.
///
/// Recording never waits and never fails. At most 1000 events wait; of more the oldest are dropped. Events that differ only
/// in their notes are counted in one (`series`), and of an object 25 are written at once, then one every five minutes.
#[derive(Clone)]
pub struct Recorder(Arc<Handle>);

/// Closes the queue when the last recorder is dropped.
struct Handle {
    shared: Arc<RecorderState>,
    /// Cancelled when the task has ended.
    ended: CancellationToken,
}

/// What a recorder and its task share: the events that wait, and the counts of the others.
#[derive(Default)]
struct RecorderState {
    queue: EventQueue,
    written: AtomicU64,
    limited: AtomicU64,
    failed: AtomicU64,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.queue.closed.cancel();
    }
}

impl Recorder {
    /// Starts a recorder for a controller, whose name has a domain: `wardle.example.com/flunder-controller`. The instance
    /// is this process, for instance the name of its pod.
    ///
    /// # Panics
    ///
    /// If it is not called in a tokio runtime.
    pub fn new(
        sink: impl EventSink,
        controller: impl Into<String>,
        instance: impl Into<String>,
    ) -> Self {
        let shared = Arc::new(RecorderState::default());
        let ended = CancellationToken::new();
        let running = ended.clone().drop_guard();
        let writer = Writer {
            shared: Arc::clone(&shared),
            sink: Box::new(sink),
            correlator: Correlator::new(controller.into(), instance.into()),
            waiting: VecDeque::new(),
        };
        tokio::spawn(async move {
            let _running = running;
            writer.run().await;
        });
        Self(Arc::new(Handle { shared, ended }))
    }

    /// Records that all is well with an object. The reason is one CamelCase word, the note a sentence.
    pub fn normal<K: Resource>(&self, object: &K, reason: &str, note: impl Into<String>) {
        self.about(EventType::Normal, object, reason, note.into());
    }

    /// Records that something may be wrong with an object.
    pub fn warning<K: Resource>(&self, object: &K, reason: &str, note: impl Into<String>) {
        self.about(EventType::Warning, object, reason, note.into());
    }

    fn about<K: Resource>(&self, event_type: EventType, object: &K, reason: &str, note: String) {
        self.record(NewEvent {
            event_type,
            regarding: ObjectReference::to(object),
            related: None,
            reason: reason.to_owned(),
            action: String::new(),
            note,
        });
    }

    /// Records an event.
    pub fn record(&self, event: NewEvent) {
        self.0.shared.queue.push(event);
    }

    /// What became of the events so far.
    pub fn metrics(&self) -> RecorderMetrics {
        let shared = &self.0.shared;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RecorderMetrics {
            written: count(&shared.written),
            dropped: shared.queue.dropped(),
            limited: count(&shared.limited),
            failed: count(&shared.failed),
        }
    }

    /// Takes no more events, also of other clones, and waits until those that wait are written, at most 5 s.
    pub async fn shutdown(self) {
        self.0.shared.queue.closed.cancel();
        self.0.ended.cancelled().await;
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recorder").field(&self.metrics()).finish()
    }
}

/// The task of a recorder.
struct Writer {
    shared: Arc<RecorderState>,
    sink: Box<dyn EventSink>,
    correlator: Correlator,
    /// Writes that failed, in the order of their next attempts.
    waiting: VecDeque<Waiting>,
}

/// A write that failed and is repeated.
struct Waiting {
    write: Write,
    /// The number of attempts so far.
    attempts: u32,
    due: Instant,
}

impl Writer {
    async fn run(mut self) {
        let closed = self.shared.queue.closed.clone();
        let limit = async {
            closed.cancelled().await;
            sleep(LAST_WRITES).await;
        };
        tokio::select! {
            () = self.write_all() => {}
            () = limit => warn!("the last events were not written in time"),
        }
    }

    /// Writes until the queue is closed and empty.
    async fn write_all(&mut self) {
        let mut next_maintenance = Instant::now() + MAINTENANCE;
        loop {
            if Instant::now() >= next_maintenance {
                for write in self.correlator.maintain(Instant::now()) {
                    self.write(write, 0).await;
                }
                next_maintenance = Instant::now() + MAINTENANCE;
            }
            if let Some(due) = self.take_due() {
                self.write(due.write, due.attempts).await;
                continue;
            }
            let queue = &self.shared.queue;
            let has_room = self.waiting.len() < MAX_WAITING;
            if let Some(event) = has_room.then(|| queue.pop()).flatten() {
                if let Some(write) = self.observe(event) {
                    self.write(write, 0).await;
                }
                continue;
            }
            if queue.closed.is_cancelled() {
                break;
            }
            // Without any, nothing is remembered that time would change.
            let maintenance = (!self.correlator.is_empty()).then_some(next_maintenance);
            let due = self.waiting.front().map(|first| first.due);
            match maintenance.into_iter().chain(due).min() {
                None => queue.changed().await,
                Some(next) => tokio::select! {
                    () = queue.changed() => {}
                    () = sleep_until(next) => {}
                },
            }
        }
        for write in self.correlator.finish(Instant::now()) {
            self.write(write, 0).await;
        }
    }

    /// The next write that is to be repeated now: all of them at the end.
    fn take_due(&mut self) -> Option<Waiting> {
        let is_closed = self.shared.queue.closed.is_cancelled();
        let now = Instant::now();
        let first = self.waiting.front()?;
        if is_closed || first.due <= now {
            return self.waiting.pop_front();
        }
        None
    }

    fn observe(&mut self, event: NewEvent) -> Option<Write> {
        let now = Instant::now();
        let write = self.correlator.observe(event, now, MicroTime::now());
        let limited = self.correlator.limited;
        self.shared.limited.store(limited, Ordering::Relaxed);
        write
    }

    /// Writes once, after some attempts. What may succeed later waits for that, as long as the recorder is used.
    async fn write(&mut self, write: Write, attempts: u32) {
        let (result, write) = self.attempt(write).await;
        let Err(error) = result else {
            self.shared.written.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let attempts = attempts + 1;
        let is_temporary = matches!(error, EventError::Temporary(_));
        let is_last = attempts == MAX_ATTEMPTS || self.shared.queue.closed.is_cancelled();
        if !is_temporary || is_last || self.waiting.len() == MAX_WAITING {
            warn!("cannot write an event: {error}");
            self.shared.failed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        debug!("cannot write an event yet: {error}");
        self.waiting.push_back(Waiting {
            write,
            attempts,
            due: Instant::now() + RETRY,
        });
    }

    /// Writes once. Returns what would be written again.
    async fn attempt(&self, write: Write) -> (Result<(), EventError>, Write) {
        let event = match &write {
            Write::Create(event) => event,
            Write::Series(event, series) => match self.sink.set_series(event, *series).await {
                // It expired; the series goes on in a new event of the same name.
                Err(EventError::NotFound) => event,
                result => return (result, write),
            },
        };
        let result = self.sink.create(event).await;
        let event = event.clone();
        (result, Write::Create(event))
    }
}
