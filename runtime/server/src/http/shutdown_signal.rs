//! The signal that the server is shutting down, for watches.

use tokio::sync::watch;

/// Becomes true when the server shuts down. The default never does.
#[derive(Clone, Debug, Default)]
pub struct ShutdownSignal(Option<watch::Receiver<bool>>);

impl From<watch::Receiver<bool>> for ShutdownSignal {
    fn from(receiver: watch::Receiver<bool>) -> Self {
        Self(Some(receiver))
    }
}

impl ShutdownSignal {
    /// Waits until the server shuts down; forever if the sender is dropped.
    pub(super) async fn wait(self) {
        if let Some(mut receiver) = self.0 {
            let told = receiver.wait_for(|stopping| *stopping).await.is_ok();
            if told {
                return;
            }
        }
        std::future::pending::<()>().await;
    }
}
