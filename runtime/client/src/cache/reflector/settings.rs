//! Settings of a reflector.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Default number of objects of a page.
const PAGE_SIZE: u32 = 500;

/// What is known of one server. Caches of the same server share it.
#[derive(Clone, Debug, Default)]
pub struct ServerTraits {
    refuses_streaming_lists: Arc<AtomicBool>,
}

impl ServerTraits {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// Whether lists are read page by page because the server has no streaming lists (`sendInitialEvents`).
    pub fn refuses_streaming_lists(&self) -> bool {
        self.refuses_streaming_lists.load(Ordering::Relaxed)
    }
    /// Reads lists page by page, without trying a streaming list.
    pub fn refuse_streaming_lists(&self) {
        self.refuses_streaming_lists.store(true, Ordering::Relaxed);
    }
}

/// Settings of a reflector.
#[derive(Clone, Debug)]
pub(in crate::cache) struct Settings {
    pub(in crate::cache) server: ServerTraits,
    pub(in crate::cache) page_size: u32,
    /// The seed of delays and timeouts.
    pub(in crate::cache) seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            server: ServerTraits::new(),
            page_size: PAGE_SIZE,
            seed: fastrand::u64(..),
        }
    }
}
