//! Watches: the stream of changes after a list.

mod event;
mod lines;
mod stream;

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::list::ListSource;
use super::object::ApiObject;
use super::options::{ListOptions, VersionMatch};
use crate::error::Error;

pub use event::{Bookmark, WatchEvent};
use stream::Limits;
pub use stream::WatchStream;

/// The shortest time that a watch without one is open.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// A watch; awaiting it sends it and gives the stream of events.
///
/// It is sent once: what an error means for the watch is the caller's decision, who knows where to resume.
///
/// ```no_run
/// # use apiloom_client::{AllNamespaces, Error, HasMetadata as _, Kind, ResourceClient, WatchEvent};
/// # use futures_util::StreamExt as _;
/// # async fn example<Flunder: Kind + apiloom_client::verbs::All>(flunders: ResourceClient<Flunder, AllNamespaces>) -> Result<(), Error> {
/// let list = flunders.list().await?;
/// let mut events = flunders.watch().from(list.resource_version()).bookmarks().await?;
/// while let Some(event) = events.next().await {
///     match event? {
///         WatchEvent::Deleted(flunder) => println!("{} is gone", flunder.name()),
///         other => println!("now at {}", other.resource_version()),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a request is sent when it is awaited"]
pub struct WatchRequest<K> {
    pub(super) make: ListSource,
    pub(super) options: ListOptions,
    pub(super) object: PhantomData<fn() -> K>,
}

impl<K: ApiObject> WatchRequest<K> {
    /// Sets all options. Limit and continue token are not for watches, and left out.
    pub fn options(mut self, options: &ListOptions) -> Self {
        self.options = options.clone();
        self
    }

    /// Begins after this resourceVersion, mostly that of a list. Default: the present objects come first, as `Added`.
    pub fn from(mut self, version: impl Into<String>) -> Self {
        self.options.resource_version = Some(version.into());
        self
    }

    /// Selects by labels: a text or a `LabelQuery`.
    pub fn labels(mut self, selector: impl fmt::Display) -> Self {
        self.options.label_selector = selector.to_string();
        self
    }

    /// Selects by fields: a text or a `FieldSelector`.
    pub fn fields(mut self, selector: impl fmt::Display) -> Self {
        self.options.field_selector = selector.to_string();
        self
    }

    /// Asks for bookmarks: events that only say how far the watch has come.
    pub fn bookmarks(mut self) -> Self {
        self.options.bookmarks = true;
        self
    }

    /// Asks for the present objects as `Added`, then a bookmark that ends them ([`Bookmark::ends_initial_events`]).
    pub fn initial_events(mut self) -> Self {
        self.options.send_initial_events = Some(true);
        self.options.resource_version_match = Some(VersionMatch::NotOlderThan);
        self.options.bookmarks = true;
        self
    }

    /// How long the server keeps the watch open, in whole seconds. Default: a random time of half an hour to an hour, as servers
    /// choose it themselves.
    ///
    /// A stream that is still open half a minute later ends with a timeout: the connection is dead.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }
}

impl<K: ApiObject> IntoFuture for WatchRequest<K> {
    type Output = Result<WatchStream<K>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            // Without a time, a stream over HTTP/1.1 would wait for ever for a server that is gone.
            let timeout = self.options.timeout;
            let timeout = timeout.unwrap_or_else(|| DEFAULT_TIMEOUT.mul_f64(1.0 + fastrand::f64()));
            let options = ListOptions {
                limit: None,
                continue_token: None,
                timeout: Some(timeout),
                ..self.options
            };
            let mut request = options.add_to(self.make.request());
            request = request.query("watch", "1");
            if options.bookmarks {
                request = request.query("allowWatchBookmarks", "true");
            }
            if let Some(initial) = options.send_initial_events {
                request = request.query("sendInitialEvents", initial.to_string());
            }
            // Compression would hold events back, and its frames can end between events.
            let request = request.header("accept-encoding", "identity");
            let path = request.shown_path();
            let settings = self.make.client.settings();
            let is_initial = options.send_initial_events == Some(true);
            let limits = Limits {
                line_bytes: settings.max_watch_line_bytes,
                initial_bytes: is_initial.then_some(settings.max_list_bytes),
                timeout,
            };
            let response = request.without_retry().stream().await?;
            WatchStream::new(response, path, self.make.kind, limits)
        })
    }
}

#[cfg(test)]
mod tests;
