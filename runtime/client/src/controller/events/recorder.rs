//! A recorder: takes events without waiting, and writes them in a task.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use apiloom_meta::{MicroTime, Resource};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, warn};

use super::correlator::{Correlator, Write};
use super::event::{EventType, NewEvent, ObjectReference};
use super::queue::EventQueue;
use super::sink::{EventError, EventSink};

/// The most attempts to write an event, and the time between them: those of client-go.
const MAX_ATTEMPTS: u32 = 12;
const RETRY: Duration = Duration::from_secs(10);
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
    shared: Arc<Shared>,
    ended: watch::Receiver<()>,
}

#[derive(Default)]
struct Shared {
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
        let shared = Arc::new(Shared::default());
        let (running, ended) = watch::channel(());
        let writer = Writer {
            shared: Arc::clone(&shared),
            sink: Box::new(sink),
            correlator: Correlator::new(controller.into(), instance.into()),
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
        let mut ended = self.0.ended.clone();
        while ended.changed().await.is_ok() {}
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recorder").field(&self.metrics()).finish()
    }
}

/// The task of a recorder.
struct Writer {
    shared: Arc<Shared>,
    sink: Box<dyn EventSink>,
    correlator: Correlator,
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
                    self.write(write).await;
                }
                next_maintenance = Instant::now() + MAINTENANCE;
            }
            let queue = &self.shared.queue;
            match queue.pop() {
                Some(event) => {
                    if let Some(write) = self.observe(event) {
                        self.write(write).await;
                    }
                }
                None if queue.closed.is_cancelled() => break,
                // Nothing is remembered that time would change.
                None if self.correlator.is_empty() => queue.changed().await,
                None => tokio::select! {
                    () = queue.changed() => {}
                    () = sleep_until(next_maintenance) => {}
                },
            }
        }
        for write in self.correlator.finish(Instant::now()) {
            self.write(write).await;
        }
    }

    fn observe(&mut self, event: NewEvent) -> Option<Write> {
        let now = Instant::now();
        let write = self.correlator.observe(event, now, MicroTime::now());
        let limited = self.correlator.limited;
        self.shared.limited.store(limited, Ordering::Relaxed);
        write
    }

    /// Writes, and repeats that as long as it makes sense and the recorder is used.
    async fn write(&self, mut write: Write) {
        for attempt in 1..=MAX_ATTEMPTS {
            let result = match &write {
                Write::Create(event) => self.sink.create(event).await,
                Write::Series(event, series) => self.sink.set_series(event, *series).await,
            };
            let error = match (result, write) {
                (Ok(()), _) => {
                    self.shared.written.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                // It expired; the series goes on in a new event of the same name.
                (Err(EventError::NotFound), Write::Series(event, _)) => {
                    write = Write::Create(event);
                    continue;
                }
                (Err(error), same) => {
                    write = same;
                    error
                }
            };
            let is_temporary = matches!(error, EventError::Temporary(_));
            let closed = &self.shared.queue.closed;
            if !is_temporary || closed.is_cancelled() || attempt == MAX_ATTEMPTS {
                warn!("cannot write an event: {error}");
                break;
            }
            debug!("cannot write an event yet: {error}");
            tokio::select! {
                () = sleep(RETRY) => {}
                () = closed.cancelled() => {}
            }
        }
        self.shared.failed.fetch_add(1, Ordering::Relaxed);
    }
}
