//! When a connection last received bytes: a large frame takes time, and nothing else can arrive before its end.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use apiloom_client::transport::StreamHook;
use parking_lot::Mutex;
use tokio::io::ReadBuf;
use tokio::time::Instant;

/// When bytes last arrived. Clones are of the same connection.
#[derive(Clone)]
pub(super) struct LastArrival(Arc<Mutex<Instant>>);

impl LastArrival {
    pub(super) fn now() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    pub(super) fn get(&self) -> Instant {
        *self.0.lock()
    }
}

impl StreamHook for LastArrival {
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        read: impl FnOnce(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(read(cx, buffer))?;
        if buffer.filled().len() > before {
            *self.0.lock() = Instant::now();
        }
        Poll::Ready(Ok(()))
    }
}
