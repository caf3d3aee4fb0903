//! What a reflector knows of a server and of its own requests, which lists and watches share.

use std::sync::Arc;
use std::time::Duration;

use super::decode::{Decoder, Transform};
use super::settings::{ServerTraits, Settings};
use crate::cache::backoff::Backoff;
use crate::cache::hub::Hub;
use crate::cache::object::CacheObject;
use crate::cache::resource_version::ResourceVersion;
use crate::cache::source::{ListItem, ListWatch, SourceError, SourceErrorKind, WatchRequest};
use crate::cache::store::Relist;

/// Range of the time that a watch is asked to last. Random, so that watches that began together do not end together.
pub(super) const WATCH_SECONDS: std::ops::Range<u64> = 300..600;
/// Longest wait for a page, and for the start of a watch.
const RESPONSE_LIMIT: Duration = Duration::from_secs(300);

/// The state as far as which the server was read.
#[derive(Debug, Default)]
pub(super) struct Position {
    /// The last version that was seen; `None` before the first one, and of servers without versions.
    pub(super) seen: Option<ResourceVersion>,
    /// Whether the server refused the last version: it has expired, or the server does not know it yet.
    pub(super) is_refused: bool,
}

impl Position {
    /// The version that a list asks for: any state at first, then one that is not older.
    pub(super) fn of_list(&self) -> String {
        match &self.seen {
            _ if self.is_refused => String::new(),
            None => "0".to_owned(),
            Some(seen) => seen.to_string(),
        }
    }
    /// The version that a streaming list asks for: the most recent state at first.
    pub(super) fn of_stream(&self) -> String {
        match &self.seen {
            Some(seen) if !self.is_refused => seen.to_string(),
            _ => String::new(),
        }
    }
    /// The version that a watch continues from.
    pub(super) fn of_watch(&self) -> String {
        self.seen
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default()
    }
    /// A complete state was read.
    pub(super) fn set(&mut self, version: &str) {
        self.seen = ResourceVersion::new(version);
        self.is_refused = false;
    }
    /// A change was read; versions of changes do not go back.
    pub(super) fn advance(&mut self, version: &str) {
        let Some(version) = ResourceVersion::new(version) else {
            return;
        };
        if self.seen.as_ref().is_none_or(|seen| version.includes(seen)) {
            self.seen = Some(version);
        }
    }
}

/// Requests to one server, and the store that their responses go to.
pub(in crate::cache) struct Session<T> {
    pub(super) source: Arc<dyn ListWatch<T>>,
    pub(super) hub: Arc<Hub<T>>,
    pub(super) decoder: Decoder<T>,
    pub(super) server: ServerTraits,
    pub(super) page_size: u32,
    pub(super) backoff: Backoff,
    random: fastrand::Rng,
    pub(super) position: Position,
    pub(super) list_failures: u32,
    /// Whether a list that may be of any state came in pages, so that the server has no cache of the resource.
    pub(super) is_paged: bool,
}

impl<T: CacheObject> Session<T> {
    pub(in crate::cache) fn new(
        source: Arc<dyn ListWatch<T>>,
        hub: Arc<Hub<T>>,
        transform: Option<Transform<T>>,
        settings: Settings,
    ) -> Self {
        let mut random = fastrand::Rng::with_seed(settings.seed);
        Self {
            source,
            decoder: Decoder::new(Arc::clone(&hub), transform),
            hub,
            server: settings.server,
            page_size: settings.page_size,
            backoff: Backoff::new(random.u64(..)),
            random,
            position: Position::default(),
            list_failures: 0,
            is_paged: false,
        }
    }

    /// Reports a failure and waits.
    pub(super) async fn fail(&mut self, error: SourceError) {
        let retry_after = error.retry_after;
        self.hub.set_degraded(error);
        self.backoff.wait(retry_after).await;
    }

    /// Whether an error is about the version that was asked for; the next request asks for the most recent state then.
    pub(super) fn is_of_version(&mut self, error: &SourceError) -> bool {
        let is_of_version = matches!(
            error.kind,
            SourceErrorKind::Expired | SourceErrorKind::TooLargeResourceVersion
        );
        self.position.is_refused |= is_of_version;
        is_of_version
    }

    pub(super) fn watch_request(&mut self) -> WatchRequest {
        WatchRequest {
            resource_version: self.position.of_watch(),
            timeout: Duration::from_millis(
                self.random
                    .u64(WATCH_SECONDS.start * 1000..WATCH_SECONDS.end * 1000),
            ),
            initial_events: false,
        }
    }

    pub(super) fn begin_list(&mut self) -> Relist<T> {
        self.decoder.begin_list();
        self.hub.begin_relist()
    }

    /// Adds an item to a list.
    pub(super) fn add(&mut self, relist: &mut Relist<T>, item: ListItem<T>) {
        let result = match item {
            // The stored object was transformed already.
            ListItem::Object(object) if relist.is_stored(&object) => Ok(object),
            ListItem::Object(object) => self.decoder.transform(object),
            ListItem::Undecodable(object) => Err(object),
        };
        match result {
            Ok(object) => relist.put(object),
            Err(object) => {
                // In a streaming list an earlier state of it may be there.
                if let Some(key) = &object.key {
                    relist.remove(key);
                }
                self.decoder.reject_in_list(object);
            }
        }
    }

    pub(super) fn finish_list(&mut self, relist: Relist<T>, version: &str) {
        self.hub.counts().count_list();
        self.decoder.finish_list();
        self.position.set(version);
        self.hub
            .finish_relist(relist, ResourceVersion::new(version));
    }
}

/// Awaits a response of the server, for a limited time.
pub(super) async fn response<V>(
    future: impl Future<Output = Result<V, SourceError>>,
) -> Result<V, SourceError> {
    let late = || {
        SourceError::new(
            SourceErrorKind::Transport,
            "the server did not respond in time",
        )
    };
    let result = tokio::time::timeout(RESPONSE_LIMIT, future).await;
    result.unwrap_or_else(|_| Err(late()))
}
