//! The queue in front of a backend: events with their share of its room, in their order.
//!
//! A queue is bounded in events and in bytes. In the mode batch a full one loses events, which is counted and logged; in the others requests
//! wait for room, and their response for the backend.

use std::sync::Arc;
use std::time::Duration;

use apiloom_registry::auth::{Answer, BoxError};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use super::legacy;
use super::metrics::{AuditMetrics, Loss};

/// Whether requests wait for a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum AuditMode {
    /// No: what is queued is written later, and lost if the queue is full.
    Batch,
    /// The response waits until its event is written, or cannot be.
    Blocking,
    /// As blocking, and a request that cannot be recorded when it comes is refused.
    BlockingStrict,
}

/// How large a queue may become.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

/// What is sent to a backend.
pub(super) enum Message {
    Event(QueuedEvent),
    /// Answered when all events before it are written, or lost.
    Flush(oneshot::Sender<()>),
}

/// An event in the queue. Dropped when it is written.
pub(super) struct QueuedEvent {
    pub(super) json: Bytes,
    done: Option<oneshot::Sender<bool>>,
    _share: Share,
}

impl QueuedEvent {
    /// Tells the request whether its event is written.
    pub(super) fn finish(self, is_written: bool) {
        if let Some(done) = self.done {
            // A request that has left does not want to know.
            let _ = done.send(is_written);
        }
    }
}

/// One event and its KiB.
type Share = [OwnedSemaphorePermit; 2];

/// The queue of a backend. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    mode: AuditMode,
    sender: mpsc::UnboundedSender<Message>,
    events: Arc<Semaphore>,
    kib: Arc<Semaphore>,
    all_kib: u32,
    losses: Losses,
}

impl Queue {
    /// A queue, and the messages that its backend takes.
    pub(super) fn new(
        mode: AuditMode,
        bounds: Bounds,
        losses: Losses,
    ) -> (Self, mpsc::UnboundedReceiver<Message>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let all_kib = u32::try_from((bounds.bytes / 1024).max(1)).unwrap_or(u32::MAX >> 3);
        let queue = Self {
            mode,
            sender,
            events: Arc::new(Semaphore::new(bounds.events.min(Semaphore::MAX_PERMITS))),
            kib: Arc::new(Semaphore::new(all_kib as usize)),
            all_kib,
            losses,
        };
        (queue, receiver)
    }

    /// Sends an event. The answer is there when the request may go on; `is_last` is whether its response waits for that.
    ///
    /// # Errors
    /// In the mode blocking-strict, that the event is not written.
    pub(super) fn send(&self, json: Bytes, is_last: bool) -> Answer<'static, Result<(), BoxError>> {
        let waits = match self.mode {
            AuditMode::Batch => false,
            // Events are written in their order, so that the last one is enough.
            AuditMode::Blocking => is_last,
            AuditMode::BlockingStrict => true,
        };
        if let Some(share) = self.share_now(json.len()) {
            // It is queued now, whether its request waits or not.
            return match self.put(json, share, waits) {
                Ok(Some(written)) => {
                    let queue = self.clone();
                    Answer::later(async move { queue.strictly(outcome(written).await) })
                }
                Ok(None) => Answer::Now(Ok(())),
                Err(error) => Answer::Now(self.strictly(Err(error))),
            };
        }
        if self.mode == AuditMode::Batch {
            self.losses.lost(Loss::Queue, "the queue is full", [&*json]);
            return Answer::Now(Ok(()));
        }
        let waiting = WaitingEvent {
            queue: self.clone(),
            json: Some(json),
        };
        Answer::later(async move {
            let queue = waiting.queue.clone();
            let sent = waiting.send(waits).await;
            queue.strictly(sent)
        })
    }

    /// The result of a request: an error counts in the strict mode alone.
    fn strictly(&self, sent: Result<(), BoxError>) -> Result<(), BoxError> {
        if self.is_strict() { sent } else { Ok(()) }
    }

    /// Queues an event. Returns what tells whether it is written, if that is waited for.
    fn put(
        &self,
        json: Bytes,
        share: Share,
        waits: bool,
    ) -> Result<Option<oneshot::Receiver<bool>>, BoxError> {
        let (done, written) = waits.then(oneshot::channel).unzip();
        let event = QueuedEvent {
            json,
            done,
            _share: share,
        };
        let sent = self.sender.send(Message::Event(event));
        match sent {
            Ok(()) => Ok(written),
            Err(mpsc::error::SendError(message)) => {
                if let Message::Event(event) = message {
                    let why = "the backend has ended";
                    self.losses.lost(Loss::Queue, why, [&*event.json]);
                }
                Err("the audit backend has ended".into())
            }
        }
    }

    fn share_now(&self, bytes: usize) -> Option<Share> {
        let event = Arc::clone(&self.events).try_acquire_owned().ok()?;
        let kib = self.kib_of(bytes);
        let kib = Arc::clone(&self.kib).try_acquire_many_owned(kib).ok()?;
        Some([event, kib])
    }

    async fn share(&self, bytes: usize) -> Result<Share, BoxError> {
        // Always in this order. The semaphores are never closed.
        let event = Arc::clone(&self.events).acquire_owned().await?;
        let kib = self.kib_of(bytes);
        let kib = Arc::clone(&self.kib).acquire_many_owned(kib).await?;
        Ok([event, kib])
    }

    /// Whether a request that cannot be recorded is refused.
    pub(super) fn is_strict(&self) -> bool {
        self.mode == AuditMode::BlockingStrict
    }

    /// An event that is larger than the room is alone in it.
    fn kib_of(&self, bytes: usize) -> u32 {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        kib.min(self.all_kib)
    }

    /// Completes when all events so far are written, or lost.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.sender.send(Message::Flush(done)).is_ok() {
            // The backend may end before.
            let _ = flushed.await;
        }
    }
}

/// Whether an event that is queued is written.
async fn outcome(written: oneshot::Receiver<bool>) -> Result<(), BoxError> {
    match written.await {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => Err("the audit event is not written".into()),
    }
}

/// An event that waits for room. If its request ends before there is some, it is lost.
struct WaitingEvent {
    queue: Queue,
    json: Option<Bytes>,
}

impl WaitingEvent {
    async fn send(mut self, waits: bool) -> Result<(), BoxError> {
        let bytes = self.json.as_ref().map_or(0, Bytes::len);
        let share = self.queue.share(bytes).await?;
        let Some(json) = self.json.take() else {
            return Ok(());
        };
        match self.queue.put(json, share, waits)? {
            Some(written) => outcome(written).await,
            None => Ok(()),
        }
    }
}

impl Drop for WaitingEvent {
    fn drop(&mut self) {
        if let Some(json) = &self.json {
            let why = "the request ended before there was room";
            self.queue.losses.lost(Loss::Queue, why, [&**json]);
        }
    }
}

/// Counts events that are lost, and logs them: the first, and then how many there were in each second. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    metrics: AuditMetrics,
    logged: Arc<Mutex<LoggedLosses>>,
}

#[derive(Debug, Default)]
struct LoggedLosses {
    last: Option<Instant>,
    /// Those that were lost since then.
    silent: usize,
}

impl Losses {
    /// Shortest time between two messages.
    const PAUSE: Duration = Duration::from_secs(1);

    pub(super) fn new(metrics: AuditMetrics) -> Self {
        Self {
            metrics,
            logged: Arc::default(),
        }
    }

    /// Counts these events, which are lost for this reason.
    pub(super) fn lost<'a>(
        &self,
        loss: Loss,
        why: &str,
        events: impl IntoIterator<Item = &'a [u8]>,
    ) {
        let mut events = events.into_iter();
        let Some(first) = events.next() else {
            return;
        };
        let count = 1 + events.count();
        self.metrics.lost(loss, count);
        let mut logged = self.logged.lock();
        logged.silent += count;
        let is_soon = |last: Instant| last.elapsed() < Self::PAUSE;
        if logged.last.is_some_and(is_soon) {
            return;
        }
        logged.last = Some(Instant::now());
        let (plugin, lost) = (loss.plugin(), std::mem::take(&mut logged.silent));
        let first = legacy::line(first);
        tracing::error!(plugin, lost, why, first, "audit events are lost");
    }
}

/// The result of a test's event, within an hour.
#[cfg(test)]
pub(super) async fn sent(answer: Answer<'static, Result<(), BoxError>>) -> Result<(), BoxError> {
    let deadline = Instant::now() + Duration::from_secs(3600);
    answer.by(deadline).await.expect("a result")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(
        mode: AuditMode,
        events: usize,
    ) -> (Queue, mpsc::UnboundedReceiver<Message>, AuditMetrics) {
        let metrics = AuditMetrics::default();
        let bounds = Bounds {
            events,
            bytes: 4 * 1024,
        };
        let (queue, messages) = Queue::new(mode, bounds, Losses::new(metrics.clone()));
        (queue, messages, metrics)
    }

    fn text(metrics: &AuditMetrics) -> String {
        let registry = apiloom_client::metrics::Registry::new();
        registry.register(metrics.clone());
        registry.text()
    }

    fn is_now(answer: &Answer<'_, Result<(), BoxError>>) -> bool {
        matches!(answer, Answer::Now(Ok(())))
    }

    fn take(messages: &mut mpsc::UnboundedReceiver<Message>) -> QueuedEvent {
        match messages.try_recv() {
            Ok(Message::Event(event)) => event,
            _ => panic!("there is no event"),
        }
    }

    #[tokio::test]
    async fn a_full_queue_loses_events_in_the_mode_batch() {
        let (queue, mut messages, metrics) = queue(AuditMode::Batch, 2);
        for _ in 0..3 {
            assert!(is_now(&queue.send(Bytes::from_static(b"{}"), true)));
        }
        let lost = || text(&metrics);
        assert!(lost().contains(r#"apiserver_audit_error_total{plugin="buffered"} 1"#));
        take(&mut messages).finish(true);
        assert!(is_now(&queue.send(Bytes::from_static(b"{}"), true)));
        assert!(lost().contains("\"} 1\n"), "there was room again");
        // The bytes have a bound too.
        take(&mut messages).finish(true);
        take(&mut messages).finish(true);
        assert!(is_now(&queue.send(vec![b' '; 4 * 1024].into(), true)));
        assert!(is_now(&queue.send(Bytes::from_static(b"{}"), true)));
        assert!(lost().contains(r#"apiserver_audit_error_total{plugin="buffered"} 2"#));
    }

    #[tokio::test]
    async fn a_response_waits_for_its_event_and_a_strict_request_too() {
        let (blocking, mut messages, _) = queue(AuditMode::Blocking, 9);
        assert!(is_now(&blocking.send(Bytes::from_static(b"1"), false)));
        let last = tokio::spawn(sent(blocking.send(Bytes::from_static(b"2"), true)));
        tokio::task::yield_now().await;
        assert_eq!(take(&mut messages).json, "1");
        let second = take(&mut messages);
        assert!(!last.is_finished());
        second.finish(true);
        assert!(last.await.unwrap().is_ok());

        let (strict, mut messages, _) = queue(AuditMode::BlockingStrict, 9);
        let first = tokio::spawn(sent(strict.send(Bytes::from_static(b"1"), false)));
        tokio::task::yield_now().await;
        take(&mut messages).finish(false);
        assert!(first.await.unwrap().is_err());
        // A backend that ends forgets nothing in silence.
        let open = tokio::spawn(sent(strict.send(Bytes::from_static(b"2"), false)));
        tokio::task::yield_now().await;
        drop(messages);
        assert!(open.await.unwrap().is_err());
        let closed = sent(strict.send(Bytes::from_static(b"3"), false)).await;
        assert!(closed.is_err());
    }

    #[tokio::test]
    async fn requests_wait_for_room() {
        let (queue, mut messages, metrics) = queue(AuditMode::Blocking, 1);
        assert!(is_now(&queue.send(Bytes::from_static(b"1"), false)));
        let second = tokio::spawn(sent(queue.send(Bytes::from_static(b"2"), false)));
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        take(&mut messages).finish(true);
        assert!(second.await.unwrap().is_ok());
        // One that leaves before there is room has lost its event.
        let third = tokio::spawn(sent(queue.send(Bytes::from_static(b"3"), false)));
        tokio::task::yield_now().await;
        third.abort();
        assert!(third.await.is_err());
        assert!(text(&metrics).contains(r#"apiserver_audit_error_total{plugin="buffered"} 1"#));
        // So has one for which nothing waits at all.
        drop(queue.send(Bytes::from_static(b"4"), true));
        assert!(text(&metrics).contains(r#"apiserver_audit_error_total{plugin="buffered"} 2"#));
        assert_eq!(take(&mut messages).json, "2");
        drop(queue.send(Bytes::from_static(b"5"), true));
        assert_eq!(take(&mut messages).json, "5", "there was room");
    }
}
