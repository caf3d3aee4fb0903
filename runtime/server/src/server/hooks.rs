//! Hooks of a program that run once the server serves, each with a health check until it has ended.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use apiloom_client::controller::CancellationToken;
use apiloom_http::documents::health::Check;
use apiloom_registry::Registry;
use apiloom_registry::auth::BoxError;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::loopback::Loopback;

/// What a post-start hook is given.
#[derive(Clone)]
#[non_exhaustive]
pub struct HookContext {
    /// A client of the server.
    pub loopback: Loopback,
}

/// What a server gives to the controllers and the stop hooks of a program.
#[derive(Clone)]
#[non_exhaustive]
pub struct Host {
    /// A client of the server.
    pub loopback: Loopback,
    /// The registry of the server.
    pub registry: Arc<Registry>,
    /// Set when the server stops.
    pub stop: CancellationToken,
}

/// A controller or a stop hook that has not run.
pub(super) struct Task {
    name: String,
    /// In a lock as that of a [`Hook`].
    run: Mutex<RunTask>,
}

type RunTask = Box<dyn FnOnce(Host) -> BoxFuture<'static, ()> + Send>;

impl Task {
    pub(super) fn new<F>(
        name: impl Into<String>,
        run: impl FnOnce(Host) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self {
            name: name.into(),
            run: Mutex::new(Box::new(move |host| run(host).boxed())),
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Runs it to its end.
    pub(super) async fn run(self, host: Host) {
        let run = self.run.into_inner();
        let ended = AssertUnwindSafe(async move { run(host).await }).catch_unwind();
        if ended.await.is_err() {
            // The panic hook has logged why.
            tracing::error!(name = %self.name, "a task of the program panicked; it is not started again");
        }
    }
}

type Run = Box<dyn FnOnce(HookContext) -> BoxFuture<'static, Result<(), BoxError>> + Send>;

/// How far a hook is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    Unfinished,
    Succeeded,
    Failed(String),
}

/// A hook that has not run.
pub(super) struct Hook {
    name: String,
    /// Taken once. In a lock only since nothing else makes it `Sync`, as the server that holds it is.
    run: Mutex<Run>,
    progress: Arc<Mutex<Progress>>,
}

impl Hook {
    pub(super) fn new<F>(
        name: impl Into<String>,
        run: impl FnOnce(HookContext) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        Self {
            name: name.into(),
            run: Mutex::new(Box::new(move |context| run(context).boxed())),
            progress: Arc::new(Mutex::new(Progress::Unfinished)),
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The check that fails until the hook has succeeded.
    pub(super) fn check(&self) -> Check {
        let progress = Arc::clone(&self.progress);
        let check = move || match &*progress.lock() {
            Progress::Unfinished => Err("not finished".to_owned()),
            Progress::Succeeded => Ok(()),
            Progress::Failed(why) => Err(why.clone()),
        };
        Check::new(format!("poststarthook/{}", self.name), check)
    }

    /// Runs the hook.
    pub(super) async fn run(self, context: HookContext) {
        let Self {
            name,
            run,
            progress,
        } = self;
        let run = run.into_inner();
        let ended = AssertUnwindSafe(async move { run(context).await }).catch_unwind();
        let ended = match ended.await {
            Ok(Ok(())) => Progress::Succeeded,
            Ok(Err(error)) => Progress::Failed(error.to_string()),
            // The panic hook has logged it.
            Err(_) => Progress::Failed("it panicked".to_owned()),
        };
        if let Progress::Failed(why) = &ended {
            tracing::error!(hook = %name, %why, "a post-start hook failed; the server stays unhealthy");
        }
        *progress.lock() = ended;
    }
}
