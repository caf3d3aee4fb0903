//! `Reflector`: keeps a store equal to the objects of a server, by a list and the watch that follows it.
//!
//! The rules for resourceVersions are those of client-go. Invariant: a list never asks for an older state than one that was
//! seen, unless the request before was refused because of its version.

mod decode;
mod list;
#[cfg(test)]
pub(in crate::cache) mod script;
mod stream;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::backoff::Backoff;
use super::hub::Hub;
use super::object::CacheObject;
use super::resource_version::ResourceVersion;
use super::source::{ListWatch, SourceError, SourceErrorKind, WatchStream};
use decode::Decoder;
pub(super) use decode::Transform;

/// Default number of objects of a page.
const PAGE_SIZE: u32 = 500;
/// Range of the time that a watch is asked to last. Random, so that watches that began together do not end together.
const WATCH_SECONDS: std::ops::Range<u64> = 300..600;
/// Time after the end that a watch was asked for, or after its last item, after which it is taken for broken.
const IDLE_MARGIN: Duration = Duration::from_secs(30);
/// Longest wait for a page, and for the start of a watch.
const RESPONSE_LIMIT: Duration = Duration::from_secs(300);
/// A watch that ends sooner counts as a failure.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// Failures of streaming lists, one after the other, after which a state is read page by page.
const STREAM_FAILURES: u32 = 3;

/// Broken responses to lists, one after the other, after which objects are only listed page by page.
const LIST_FAILURES: u32 = 2;

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
pub(super) struct Settings {
    pub(super) server: ServerTraits,
    pub(super) page_size: u32,
    /// The seed of delays and timeouts.
    pub(super) seed: u64,
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

/// The state as far as which the server was read.
#[derive(Debug, Default)]
struct Position {
    /// The last version that was seen; `None` before the first one, and of servers without versions.
    seen: Option<ResourceVersion>,
    /// Whether the server refused the last version: it has expired, or the server does not know it yet.
    is_refused: bool,
}

impl Position {
    /// The version that a list asks for: any state at first, then one that is not older.
    fn of_list(&self) -> String {
        match &self.seen {
            _ if self.is_refused => String::new(),
            None => "0".to_owned(),
            Some(seen) => seen.to_string(),
        }
    }
    /// The version that a streaming list asks for: the most recent state at first.
    fn of_stream(&self) -> String {
        match &self.seen {
            Some(seen) if !self.is_refused => seen.to_string(),
            _ => String::new(),
        }
    }
    /// The version that a watch continues from.
    fn of_watch(&self) -> String {
        self.seen
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default()
    }
    /// A complete state was read.
    fn set(&mut self, version: &str) {
        self.seen = ResourceVersion::new(version);
        self.is_refused = false;
    }
    /// A change was read; versions of changes do not go back.
    fn advance(&mut self, version: &str) {
        let Some(version) = ResourceVersion::new(version) else {
            return;
        };
        if self.seen.as_ref().is_none_or(|seen| version.includes(seen)) {
            self.seen = Some(version);
        }
    }
}

/// A state that an earlier cache had.
pub(super) struct Saved<T> {
    pub(super) objects: Vec<T>,
    pub(super) version: ResourceVersion,
}

/// Keeps the store of a hub equal to the objects of a server.
pub(super) struct Reflector<T> {
    source: Arc<dyn ListWatch<T>>,
    hub: Arc<Hub<T>>,
    decoder: Decoder<T>,
    server: ServerTraits,
    page_size: u32,
    backoff: Backoff,
    random: fastrand::Rng,
    position: Position,
    /// What the cache begins with.
    saved: Option<Saved<T>>,
    /// Whether this resource has no streaming lists for this user, for instance since it cannot be watched.
    has_no_streams: bool,
    stream_failures: u32,
    list_failures: u32,
    /// Whether a list that may be of any state came in pages, so that the server has no cache of the resource.
    is_paged: bool,
}

impl<T: CacheObject> Reflector<T> {
    pub(super) fn new(
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
            saved: None,
            has_no_streams: false,
            stream_failures: 0,
            list_failures: 0,
            is_paged: false,
        }
    }

    /// Reads the state and follows its changes, for ever; it ends when the future is dropped.
    pub(super) async fn run(mut self) {
        if let Some(saved) = self.saved.take() {
            self.resume(saved).await;
        }
        loop {
            match self.sync().await {
                Ok(stream) => {
                    self.hub.set_live();
                    self.follow(stream).await;
                }
                Err(error) => self.fail(error).await,
            }
        }
    }

    /// Begins with a state that was saved.
    pub(super) fn begin_with(&mut self, saved: Saved<T>) {
        self.saved = Some(saved);
    }

    /// Shows a state that was saved, and follows its changes until it must be read again.
    async fn resume(&mut self, saved: Saved<T>) {
        let mut relist = self.begin_list();
        for object in saved.objects {
            relist.put(object);
        }
        self.position.set(saved.version.as_str());
        self.hub.finish_relist(relist, Some(saved.version));
        self.follow(None).await;
    }

    /// Reads the whole state. The result is the watch that continues it, if there is one already.
    async fn sync(&mut self) -> Result<Option<WatchStream<T>>, SourceError> {
        let is_refused = self.has_no_streams || self.server.refuses_streaming_lists();
        let streams = !is_refused || self.source.always_streams();
        let mut refusal = None;
        if streams && self.stream_failures < STREAM_FAILURES {
            match self.stream_list().await {
                Ok(stream) => {
                    self.stream_failures = 0;
                    return Ok(Some(stream));
                }
                Err(error) if error.kind == SourceErrorKind::Refused => {
                    tracing::info!(cache = self.hub.name(), %error, "a streaming list is refused; the objects are listed");
                    refusal = Some(error);
                }
                Err(error) => {
                    self.stream_failures += 1;
                    return Err(error);
                }
            }
        }
        self.stream_failures = 0;
        self.page_list().await?;
        if let Some(error) = refusal {
            self.remember_refusal(&error);
        }
        Ok(None)
    }

    /// Remembers that a streaming list was refused although the objects can be listed.
    fn remember_refusal(&mut self, error: &SourceError) {
        // These codes are about the parameters or the storage, the others about this resource or this user.
        if matches!(error.code, None | Some(400 | 422 | 500)) {
            self.server.refuse_streaming_lists();
        } else {
            self.has_no_streams = true;
        }
    }

    /// Reports a failure and waits.
    async fn fail(&mut self, error: SourceError) {
        let retry_after = error.retry_after;
        self.hub.set_degraded(error);
        self.backoff.wait(retry_after).await;
    }

    /// Whether an error is about the version that was asked for; the next request asks for the most recent state then.
    fn is_of_version(&mut self, error: &SourceError) -> bool {
        let is_of_version = matches!(
            error.kind,
            SourceErrorKind::Expired | SourceErrorKind::TooLargeResourceVersion
        );
        self.position.is_refused |= is_of_version;
        is_of_version
    }
}

/// Awaits a response of the server, for a limited time.
async fn response<V>(
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
