//! The signal that the server is going down, as watches wait for it.

use tokio::sync::watch;

/// Becomes true when the server stops. The default never does.
#[derive(Clone, Debug, Default)]
pub struct Stopping(Option<watch::Receiver<bool>>);

impl From<watch::Receiver<bool>> for Stopping {
    fn from(receiver: watch::Receiver<bool>) -> Self {
        Self(Some(receiver))
    }
}

impl Stopping {
    /// Returns when the server stops; never, when the sender is gone.
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
