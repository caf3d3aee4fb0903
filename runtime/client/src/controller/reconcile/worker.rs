//! A worker: takes keys from the queue and calls the reconcile function.

use std::fmt;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use apiloom_meta::GroupResource;

use super::super::guard::{ConsistencyGuard, WriteRecorder};
use super::super::queue::{WorkItem, WorkQueue};
use super::action::{Action, Context, ReconcileError, Request};
use super::metrics::{CallResult, MetricsRecorder};

/// What a call returned, or the message of its panic.
type CallOutput = Result<Result<Action, ReconcileError>, Box<dyn std::any::Any + Send>>;

/// A reconcile function of any type.
pub(super) type Reconcile<K> =
    dyn Fn(Request<K>, Context) -> BoxFuture<'static, Result<Action, ReconcileError>> + Send + Sync;

/// What the workers of a controller share.
pub(super) struct Worker<K: Clone + Eq + Hash> {
    pub(super) name: String,
    pub(super) queue: WorkQueue<K>,
    pub(super) reconcile: Box<Reconcile<K>>,
    pub(super) metrics: MetricsRecorder,
    pub(super) guard: Arc<ConsistencyGuard<K>>,
    /// The resource of the first cache.
    pub(super) first_cache: Option<GroupResource>,
    /// Ends all calls.
    pub(super) cancel: CancellationToken,
    /// How long a call may take before it is told to end; `None`: any time.
    pub(super) timeout: Option<Duration>,
    /// How long a call may take after it was told to end.
    pub(super) grace: Duration,
}

/// Counts a call also if its future is dropped.
struct Call<'a> {
    metrics: &'a MetricsRecorder,
    started: Instant,
    result: CallResult,
}

impl<'a> Call<'a> {
    fn begin(metrics: &'a MetricsRecorder) -> Self {
        metrics.begin();
        Self {
            metrics,
            started: Instant::now(),
            result: CallResult::Dropped,
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.metrics.end(self.result, self.started.elapsed());
    }
}

impl<K> Worker<K>
where
    K: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    /// Works until the queue is shut down.
    pub(super) async fn run(self: Arc<Self>) {
        while let Some(item) = self.queue.next().await {
            self.handle(item).await;
        }
    }

    async fn handle(&self, item: WorkItem<K>) {
        if let Some(delay) = self.guard.wait(item.key()) {
            item.postpone(delay);
            return;
        }
        let mut call = Call::begin(&self.metrics);
        let output = self.call(&item).await;
        let (name, key) = (&self.name, item.key());
        call.result = match &output {
            None => CallResult::Dropped,
            Some(Err(_)) => CallResult::Panic,
            Some(Ok(Ok(Action::Done))) => CallResult::Success,
            Some(Ok(Ok(Action::RequeueAfter(_) | Action::RequeueWhenSeen(_)))) => {
                CallResult::RequeueAfter
            }
            Some(Ok(Err(error))) if error.is_terminal() => CallResult::TerminalError,
            Some(Ok(Err(_))) => CallResult::Error,
        };
        match output {
            None => {
                warn!(controller = %name, ?key, "reconcile did not end after it was cancelled; it will be retried");
                item.retry();
            }
            Some(Err(panic)) => {
                let message = panic_message(&*panic);
                error!(controller = %name, ?key, "reconcile panicked: {message}");
                item.retry();
            }
            Some(Ok(Ok(Action::Done))) => item.succeed(),
            Some(Ok(Ok(Action::RequeueAfter(delay)))) => item.requeue_after(delay),
            Some(Ok(Ok(Action::RequeueWhenSeen(version)))) => {
                if let Some(resource) = &self.first_cache {
                    self.guard.record(key, resource, version.as_str());
                }
                item.requeue_after(Duration::ZERO);
            }
            Some(Ok(Err(error))) if error.is_terminal() => {
                error!(controller = %name, ?key, "reconcile failed, and is not retried: {error}");
                item.succeed();
            }
            Some(Ok(Err(error))) => {
                let failures = item.failures() + 1;
                debug!(controller = %name, ?key, failures, "reconcile failed: {error}");
                item.retry();
            }
        }
    }

    /// Calls the reconcile function. `None` if it went on for the grace period after it was told to end.
    async fn call(&self, item: &WorkItem<K>) -> Option<CallOutput> {
        let request = Request::new(item.key().clone(), item.failures(), item.priority());
        let cancel = self.cancel.child_token();
        let (guard, key) = (Arc::clone(&self.guard), item.key().clone());
        let writes = WriteRecorder::new(Arc::new(move |resource, version| {
            guard.record(&key, resource, version);
        }));
        let context = Context::new(cancel.clone(), writes);
        // In an async block, so that a panic before the first await is caught too.
        let call = async { (self.reconcile)(request, context).await };
        let call = AssertUnwindSafe(call).catch_unwind();
        tokio::pin!(call);
        let limit = async {
            match self.timeout {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            output = &mut call => return Some(output),
            () = cancel.cancelled() => {}
            () = limit => cancel.cancel(),
        }
        timeout(self.grace, call).await.ok()
    }
}

/// The text of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let string = panic.downcast_ref::<String>().map(String::as_str);
    text.or(string).unwrap_or("no message")
}
