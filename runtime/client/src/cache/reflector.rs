//! `Reflector`: keeps a store equal to the objects of a server, by a list and the watch that follows it.
//!
//! The rules for resourceVersions are those of client-go. Invariant: a list never asks for an older state than one that was
//! seen, unless the request before was refused because of its version.

mod decode;
mod list;
#[cfg(test)]
pub(in crate::cache) mod script;
mod session;
mod settings;
mod stream;
#[cfg(test)]
mod tests;
mod watch;

use super::object::CacheObject;
use super::resource_version::ResourceVersion;
use super::source::{ListWatch, SourceError, SourceErrorKind, WatchStream};
pub(super) use decode::Transform;
pub(super) use session::Session;
pub use settings::ServerTraits;
pub(super) use settings::Settings;

/// A state that an earlier cache had.
pub(super) struct SavedState<T> {
    pub(super) objects: Vec<T>,
    pub(super) version: ResourceVersion,
}

/// Failures of streaming lists, one after the other, after which a state is read page by page.
const STREAM_FAILURES: u32 = 3;

/// Keeps the store of a hub equal to the objects of a server.
pub(super) struct Reflector<T> {
    session: Session<T>,
    /// What the cache begins with.
    saved: Option<SavedState<T>>,
    /// Whether this resource has no streaming lists for this user, for instance since it cannot be watched.
    has_no_streams: bool,
    stream_failures: u32,
}

impl<T: CacheObject> Reflector<T> {
    pub(super) fn new(session: Session<T>) -> Self {
        Self {
            session,
            saved: None,
            has_no_streams: false,
            stream_failures: 0,
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
                    self.session.hub.set_live();
                    self.session.follow(stream).await;
                }
                Err(error) => self.session.fail(error).await,
            }
        }
    }

    /// Begins with a state that was saved.
    pub(super) fn begin_with(&mut self, saved: SavedState<T>) {
        self.saved = Some(saved);
    }

    /// Shows a state that was saved, and follows its changes until it must be read again.
    async fn resume(&mut self, saved: SavedState<T>) {
        let mut relist = self.session.begin_list();
        for object in saved.objects {
            relist.put(object);
        }
        self.session.position.set(saved.version.as_str());
        self.session.hub.finish_relist(relist, Some(saved.version));
        self.session.follow(None).await;
    }

    /// Reads the whole state. The result is the watch that continues it, if there is one already.
    async fn sync(&mut self) -> Result<Option<WatchStream<T>>, SourceError> {
        let is_refused = self.has_no_streams || self.session.server.refuses_streaming_lists();
        let streams = !is_refused || self.session.source.always_streams();
        let mut refusal = None;
        if streams && self.stream_failures < STREAM_FAILURES {
            match self.session.stream_list().await {
                Ok(stream) => {
                    self.stream_failures = 0;
                    return Ok(Some(stream));
                }
                Err(error) if error.kind == SourceErrorKind::Refused => {
                    tracing::info!(cache = self.session.hub.name(), %error, "a streaming list is refused; the objects are listed");
                    refusal = Some(error);
                }
                Err(error) => {
                    self.stream_failures += 1;
                    return Err(error);
                }
            }
        }
        self.stream_failures = 0;
        self.session.page_list().await?;
        if let Some(error) = refusal {
            self.remember_refusal(&error);
        }
        Ok(None)
    }

    /// Remembers that a streaming list was refused although the objects can be listed.
    fn remember_refusal(&mut self, error: &SourceError) {
        // These codes are about the parameters or the storage, the others about this resource or this user.
        if matches!(error.code, None | Some(400 | 422 | 500)) {
            self.session.server.refuse_streaming_lists();
        } else {
            self.has_no_streams = true;
        }
    }
}
