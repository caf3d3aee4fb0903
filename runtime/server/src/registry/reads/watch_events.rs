//! The events of a watch, wherever they come from.

use apiloom_meta::ApiError;

use super::event::WatchEvent;
use super::watch::StoredEvents;

/// The events of a watch, in order. An `Err` is sent as an ERROR event and is the last item.
#[derive(Debug)]
pub struct WatchEvents(StoredEvents);

impl From<StoredEvents> for WatchEvents {
    fn from(events: StoredEvents) -> Self {
        Self(events)
    }
}

impl WatchEvents {
    /// Waits for the next event. Cancel-safe: dropping the future loses no event.
    pub fn next(&mut self) -> impl Future<Output = Option<Result<WatchEvent, ApiError>>> + Send {
        self.0.next()
    }

    /// Whether an event may be available without waiting.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready()
    }
}
