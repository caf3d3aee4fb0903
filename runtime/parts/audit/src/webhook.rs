//! The backend that sends events to another server, as lists (`EventList` of `audit.k8s.io/v1`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::config::{Config, ConfigError, Kubeconfig};
use apiloom_client::transport::{Body, Transport};
use bytes::Bytes;
use http::{Request, header};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::event::as_item;
use super::metrics::Loss;
use super::queue::{Losses, Message, QueuedEvent};
use super::throttle::Throttle;

/// Tries of a batch, as in kube-apiserver.
const TRIES: u32 = 5;

/// How much longer each pause between two tries is than the one before.
const FACTOR: f64 = 1.5;

/// Part of a pause that is added at random, so that several servers do not try at the same moments.
const JITTER: f64 = 0.2;

/// How long a try may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Most batches that are sent at a time: while so many wait for a webhook that does not answer, events stay in the queue, which has a bound.
const MAX_SENT: u32 = 8;

/// Most bytes that are read of a response without success.
const REFUSAL_BYTES: usize = 4 * 1024;

/// Where the webhook is.
#[derive(Clone)]
pub(super) struct Webhook {
    transport: Arc<dyn Transport>,
    path: String,
}

impl Webhook {
    /// The webhook that the current context of a kubeconfig names. Nothing is sent yet.
    ///
    /// # Errors
    /// Why the file does not name one.
    pub(super) fn read(file: &Path) -> Result<Self, String> {
        let read = |file: PathBuf| -> Result<Self, ConfigError> {
            let config = Config::from_kubeconfig(&Kubeconfig::read(&[file])?, None)?;
            let client = config.client()?.build()?;
            let (_, rest) = config.url.split_once("://").unwrap_or(("", &config.url));
            let path = rest.find('/').map_or("/", |at| &rest[at..]).to_owned();
            Ok(Self {
                transport: Arc::clone(client.transport()),
                path,
            })
        };
        let shown = file.display();
        read(file.to_owned())
            .map_err(|error| format!("--audit-webhook-config-file {shown}: {error}"))
    }

    /// Sends a list of events once.
    async fn post(&self, list: Bytes) -> Result<(), String> {
        let request = Request::post(&self.path)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .body(Body::from(list))
            .map_err(|error| error.to_string())?;
        let sent = tokio::time::timeout(TIMEOUT, self.transport.call(request)).await;
        let response = sent.map_err(|_| "the webhook does not answer".to_owned())?;
        let response = response.map_err(|error| error.to_string())?;
        let code = response.status();
        if code.is_success() {
            return Ok(());
        }
        let body = response.into_body().collect(REFUSAL_BYTES);
        let body = tokio::time::timeout(TIMEOUT, body).await;
        let body = body.ok().and_then(Result::ok).unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        Err(format!("the webhook answers {code}: {}", body.trim()))
    }
}

/// How events are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batching {
    /// Most events of a list.
    pub(super) max_events: usize,
    /// Most bytes of a list of several events.
    pub(super) max_bytes: usize,
    /// How long the first event of a list waits for others.
    pub(super) max_wait: Duration,
    /// The pause after the first try.
    pub(super) initial_backoff: Duration,
}

/// Sends what is queued from now on.
pub(super) async fn run(
    webhook: Webhook,
    batching: Batching,
    throttle: Option<Throttle>,
    messages: UnboundedReceiver<Message>,
    losses: Losses,
) {
    let sender = Sender {
        webhook,
        batching,
        throttle,
        sent: Arc::new(Semaphore::new(MAX_SENT as usize)),
        losses,
    };
    sender.run(messages).await;
}

struct Sender {
    webhook: Webhook,
    batching: Batching,
    throttle: Option<Throttle>,
    /// A permit for each batch that is sent.
    sent: Arc<Semaphore>,
    losses: Losses,
}

/// What is sent next.
#[derive(Default)]
struct Batch {
    events: Vec<QueuedEvent>,
    bytes: usize,
    flushed: Vec<oneshot::Sender<()>>,
}

impl Sender {
    async fn run(mut self, mut messages: UnboundedReceiver<Message>) {
        let mut left = None;
        while let Some(batch) = self.collect(&mut messages, &mut left).await {
            if !batch.events.is_empty() {
                self.send(batch.events).await;
            }
            if !batch.flushed.is_empty() {
                // With all permits nothing is sent any more. The semaphore is never closed.
                let all = self.sent.acquire_many(MAX_SENT).await;
                drop(all);
            }
            for done in batch.flushed {
                // The server may have stopped to wait.
                let _ = done.send(());
            }
        }
    }

    /// The next batch; `None` if there will be no events any more. An event that does not fit is left for the next one.
    async fn collect(
        &self,
        messages: &mut UnboundedReceiver<Message>,
        left: &mut Option<QueuedEvent>,
    ) -> Option<Batch> {
        let mut batch = Batch::default();
        let first = match left.take() {
            Some(event) => Message::Event(event),
            None => messages.recv().await?,
        };
        *left = self.add(&mut batch, first);
        let until = Instant::now() + self.batching.max_wait;
        while left.is_none()
            && batch.flushed.is_empty()
            && batch.events.len() < self.batching.max_events
        {
            match tokio::time::timeout_at(until, messages.recv()).await {
                Ok(Some(message)) => *left = self.add(&mut batch, message),
                Ok(None) | Err(_) => break,
            }
        }
        Some(batch)
    }

    /// Adds a message to a batch; returns an event that does not fit.
    fn add(&self, batch: &mut Batch, message: Message) -> Option<QueuedEvent> {
        match message {
            Message::Flush(done) => batch.flushed.push(done),
            Message::Event(event) => {
                let bytes = batch.bytes + event.json.len();
                if !batch.events.is_empty() && bytes > self.batching.max_bytes {
                    return Some(event);
                }
                batch.bytes = bytes;
                batch.events.push(event);
            }
        }
        None
    }

    /// Sends a batch beside others, once there is a place for it.
    async fn send(&mut self, events: Vec<QueuedEvent>) {
        if let Some(throttle) = &mut self.throttle {
            let wait = throttle.wait(Instant::now().into_std());
            tokio::time::sleep(wait).await;
        }
        let Ok(place) = Arc::clone(&self.sent).acquire_owned().await else {
            return;
        };
        let (webhook, losses) = (self.webhook.clone(), self.losses.clone());
        let backoff = self.batching.initial_backoff;
        tokio::spawn(async move {
            let sent = send_again(&webhook, list(&events), backoff).await;
            if let Err(error) = &sent {
                let lost = events.iter().map(|event| &*event.json);
                losses.lost(Loss::Webhook, error, lost);
            }
            for event in events {
                event.finish(sent.is_ok());
            }
            drop(place);
        });
    }
}

/// The list of these events.
fn list(events: &[QueuedEvent]) -> Bytes {
    let bytes: usize = events.iter().map(|event| event.json.len()).sum();
    let mut list = Vec::with_capacity(bytes + 128);
    list.extend_from_slice(
        br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#,
    );
    for (index, event) in events.iter().enumerate() {
        list.extend_from_slice(if index == 0 { b"{" } else { b",{" });
        list.extend_from_slice(as_item(&event.json));
    }
    list.extend_from_slice(b"]}\n");
    list.into()
}

/// Sends a list until it is accepted, with a longer pause after each try. Any failure is one that may pass.
async fn send_again(webhook: &Webhook, list: Bytes, initial: Duration) -> Result<(), String> {
    let mut pause = initial;
    for _ in 1..TRIES {
        if webhook.post(list.clone()).await.is_ok() {
            return Ok(());
        }
        let jitter = 1.0 + JITTER * fastrand::f64();
        tokio::time::sleep(pause.mul_f64(jitter)).await;
        pause = pause.mul_f64(FACTOR);
    }
    webhook.post(list).await
}

#[cfg(test)]
mod tests;
