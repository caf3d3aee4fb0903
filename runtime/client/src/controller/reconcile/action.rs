//! What a reconcile function gets and what it returns.

use std::fmt;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::cache::ResourceVersion;
use crate::client::Client;

use super::super::guard::WriteRecorder;
use super::super::queue::Priority;

/// A key that is to be reconciled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request<K> {
    /// The key.
    pub key: K,
    /// The number of attempts of this key that failed in a row before this one.
    pub failures: u32,
    /// The priority with which the key was queued.
    pub priority: Priority,
}

impl<K> Request<K> {
    pub(super) fn new(key: K, failures: u32, priority: Priority) -> Self {
        Self {
            key,
            failures,
            priority,
        }
    }
}

/// What belongs to one call of a reconcile function.
#[derive(Clone, Debug)]
pub struct Context {
    cancel: CancellationToken,
    writes: WriteRecorder,
}

impl Context {
    pub(in super::super) fn new(cancel: CancellationToken, writes: WriteRecorder) -> Self {
        Self { cancel, writes }
    }

    /// Waits until this call should end: the controller stops, or the call took too long. A call that goes on is dropped
    /// at one of its next awaits.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// The signal that this call should end.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// A client that records the writes of this call ([`Context::writes`]), also the deletions. Clients of kinds that are
    /// made from it do the same.
    ///
    /// ```no_run
    /// # use apiloom_client::{Client, Error, Kind, verbs};
    /// # use apiloom_client::controller::Context;
    /// # async fn example<Flunder: Kind + apiloom_client::NamespacedKind + verbs::All>(context: &Context, client: &Client, flunder: Flunder) -> Result<(), Error> {
    /// let flunders = context.client(client).namespaced::<Flunder>("default");
    /// flunders.update(&flunder).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn client(&self, client: &Client) -> Client {
        let writes = self.writes.clone();
        client.on_write(move |resource, version| writes.record_version(resource, version))
    }

    /// Records what this call writes, so that the next call of the key waits until the caches of the controller
    /// ([`Controller::cache`](super::Controller::cache)) show it, for at most 10 s.
    ///
    /// ```no_run
    /// # use apiloom_client::controller::Context;
    /// # fn example<K: apiloom_meta::Resource>(context: &Context, updated: &K) {
    /// context.writes().record(updated);
    /// # }
    /// ```
    pub fn writes(&self) -> &WriteRecorder {
        &self.writes
    }
}

/// When a key is reconciled again, if nothing changes before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// At the next change.
    Done,
    /// After this duration.
    RequeueAfter(Duration),
    /// When the controller's first cache shows this version, or after 10 s; at once without a cache.
    RequeueWhenSeen(ResourceVersion),
}

/// Why a reconcile function failed. Each [`Error`](std::error::Error) becomes one by `?` and is retried after the next
/// delay of the key's backoff; [`terminal`](Self::terminal) is for those that only a change can mend.
pub struct ReconcileError {
    source: Box<dyn std::error::Error + Send + Sync>,
    is_terminal: bool,
}

impl ReconcileError {
    /// The error, not to be retried until something changes.
    #[must_use]
    pub fn terminal(mut self) -> Self {
        self.is_terminal = true;
        self
    }

    /// Whether the error is retried only after a change.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// The error itself.
    pub fn get_ref(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.source
    }
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for ReconcileError {
    fn from(error: E) -> Self {
        Self {
            source: error.into(),
            is_terminal: false,
        }
    }
}

impl fmt::Debug for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.source, f)
    }
}

impl fmt::Display for ReconcileError {
    /// The error and its causes: `write failed: connection reset`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        let mut cause = self.source.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
