//! The events of a watch, wherever they come from.

use apiloom_meta::ApiError;

use super::code_events::CodeEvents;
use super::event::WatchEvent;
use super::watch::StoredEvents;

/// The events of a watch, in order. An `Err` is sent as an ERROR event and is the last item.
#[derive(Debug)]
pub struct WatchEvents(EventSource);

#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "most watches are of a store, and need no box"
)]
enum EventSource {
    Stored(StoredEvents),
    Code(Box<CodeEvents>),
}

impl From<StoredEvents> for WatchEvents {
    fn from(events: StoredEvents) -> Self {
        Self(EventSource::Stored(events))
    }
}

impl From<CodeEvents> for WatchEvents {
    fn from(events: CodeEvents) -> Self {
        Self(EventSource::Code(Box::new(events)))
    }
}

impl WatchEvents {
    /// Waits for the next event. Cancel-safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        match &mut self.0 {
            EventSource::Stored(events) => events.next().await,
            EventSource::Code(events) => events.next().await,
        }
    }

    /// Whether an event may be available without waiting.
    pub fn is_ready(&self) -> bool {
        match &self.0 {
            EventSource::Stored(events) => events.is_ready(),
            EventSource::Code(events) => events.is_ready(),
        }
    }
}
