//! The tasks of a test server, and their end.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use super::shared::SharedState;

/// A server that runs until this is dropped.
pub(crate) struct Running {
    shared: Arc<SharedState>,
    /// Tells the server to stop when it is dropped.
    stop: Mutex<Option<oneshot::Sender<()>>>,
    serving: Mutex<Option<JoinHandle<()>>>,
    /// The tasks of its ports, which are aborted with it.
    ports: Mutex<JoinSet<()>>,
}

impl Running {
    pub(crate) fn new(
        shared: Arc<SharedState>,
        stop: oneshot::Sender<()>,
        serving: JoinHandle<()>,
    ) -> Self {
        Self {
            shared,
            stop: Mutex::new(Some(stop)),
            serving: Mutex::new(Some(serving)),
            ports: Mutex::default(),
        }
    }

    /// Adds the task of a port.
    pub(crate) fn add_port(&self, serve: impl Future<Output = ()> + Send + 'static) {
        self.ports.lock().spawn(serve);
    }

    /// Tells the server to stop, and waits until all of its tasks have ended.
    pub(crate) async fn stop_and_wait(&self) {
        self.stop();
        let mut ports = std::mem::take(&mut *self.ports.lock());
        ports.shutdown().await;
        let serving = self.serving.lock().take();
        if let Some(serving) = serving {
            // It panicked, or the runtime is shutting down: it has ended in both cases.
            let _ = serving.await;
        }
    }

    /// Tells the server to stop, and new requests that it has stopped.
    fn stop(&self) {
        self.shared.stop();
        self.shared.watches.end_all();
        self.ports.lock().abort_all();
        drop(self.stop.lock().take());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}
