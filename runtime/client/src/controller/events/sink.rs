//! Where events are written.

use apiloom_meta::kind::SmolStr;
use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::json;

use super::event::{Event, EventSeries};
use crate::client::{ApiObject, ApiResource, Client, Kind, Patch};
use crate::error::Error;
use crate::object::{HasMetadata, metadata_methods};

/// Writes events.
pub trait EventSink: Send + Sync + 'static {
    /// Creates an event. One that exists already was created by an earlier attempt.
    ///
    /// # Errors
    /// If it was not written.
    fn create<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<(), EventError>>;

    /// Sets the series of an event that was created.
    ///
    /// # Errors
    /// [`EventError::NotFound`] if the event does not exist any more, others if it was not written.
    fn set_series<'a>(
        &'a self,
        event: &'a Event,
        series: EventSeries,
    ) -> BoxFuture<'a, Result<(), EventError>>;
}

/// Why an event was not written.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// The event that is to be changed does not exist: servers keep events for a limited time.
    #[error("the event does not exist")]
    NotFound,
    /// It may succeed later.
    #[error("{0}")]
    Temporary(Box<dyn std::error::Error + Send + Sync>),
    /// It will not succeed.
    #[error("{0}")]
    Refused(Box<dyn std::error::Error + Send + Sync>),
}

impl HasMetadata for Event {
    metadata_methods!(self => self.metadata);
}

all_verbs!(Event);
impl apiloom_meta::kind::NamespacedKind for Event {}

impl ApiObject for Event {}

impl Kind for Event {
    fn api_resource() -> ApiResource {
        ApiResource {
            group: SmolStr::new_static("events.k8s.io"),
            version: SmolStr::new_static("v1"),
            kind: SmolStr::new_static("Event"),
            plural: SmolStr::new_static("events"),
        }
    }
}

/// Writes events with a client, as events.k8s.io/v1.
#[derive(Clone, Debug)]
pub struct ClientEvents(Client);

impl ClientEvents {
    /// Writes events with this client.
    pub fn new(client: &Client) -> Self {
        // The recorder repeats what fails, and writes other events meanwhile.
        Self(client.without_retry())
    }
}

fn event_error(error: Error) -> EventError {
    match &error {
        Error::Transport(_) | Error::Timeout(_) => EventError::Temporary(error.into()),
        _ if error.is_temporary() => EventError::Temporary(error.into()),
        _ => EventError::Refused(error.into()),
    }
}

impl EventSink for ClientEvents {
    fn create<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<(), EventError>> {
        async {
            let events = self.0.namespaced::<Event>(event.namespace());
            match events.create(event).await {
                Err(error) if !error.is_already_exists() => Err(event_error(error)),
                _ => Ok(()),
            }
        }
        .boxed()
    }

    fn set_series<'a>(
        &'a self,
        event: &'a Event,
        series: EventSeries,
    ) -> BoxFuture<'a, Result<(), EventError>> {
        async move {
            let events = self.0.namespaced::<Event>(event.namespace());
            let patch = Patch::merge(&json!({ "series": series }));
            let patched = events.patch(event.name(), patch).await;
            match patched {
                Err(error) if error.is_not_found() => Err(EventError::NotFound),
                patched => patched.map(drop).map_err(event_error),
            }
        }
        .boxed()
    }
}
