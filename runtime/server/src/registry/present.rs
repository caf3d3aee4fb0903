//! What a write finds under a key: the object as the store has it or, to begin with, as the watch cache does.
//!
//! A write may begin with what the cache has, since it only happens if the object is still at that revision. What it may
//! not do is to refuse, or to leave a write out, for what the cache says: that is judged again by what is stored.

use apiloom_meta::ApiError;
use apiloom_storage::{Entry, Revision};

use super::document::Encoded;
use super::endpoint::Endpoint;
use super::prepared::Prepared;

/// An object that is about to be changed.
#[derive(Debug)]
pub(super) enum Present {
    /// As the watch cache has it, which may be behind.
    Cached(Encoded),
    /// As it is stored.
    Stored(Box<Entry>),
}

impl Present {
    /// The revision that wrote it.
    pub(super) fn revision(&self) -> Revision {
        match self {
            Self::Cached(cached) => cached.revision(),
            Self::Stored(entry) => entry.revision,
        }
    }

    /// Whether it is known to be what would be stored. What the cache has is compared as it is served, so that it only
    /// says what is worth a look into the store.
    pub(super) fn holds(&self, prepared: &Prepared) -> bool {
        match self {
            Self::Cached(cached) => prepared.shows(cached.json().whole(), cached.revision()),
            Self::Stored(entry) => entry.value == prepared.stored,
        }
    }

    /// Whether this is what is stored.
    pub(super) fn is_certain(&self) -> bool {
        matches!(self, Self::Stored(_))
    }
}

impl Endpoint {
    /// What is under a key, from where it costs least.
    ///
    /// # Errors
    /// Of the store.
    pub(super) async fn present(
        &self,
        key: &str,
        operation: &str,
    ) -> Result<Option<Present>, ApiError> {
        let cached = self.cache.as_ref().and_then(|cache| {
            let state = cache.snapshot();
            Encoded::new(state.get(key)?, None).ok()
        });
        match cached {
            Some(cached) => Ok(Some(Present::Cached(cached))),
            None => self.stored(key, operation).await,
        }
    }

    /// What is stored under a key.
    ///
    /// # Errors
    /// Of the store.
    pub(super) async fn stored(
        &self,
        key: &str,
        operation: &str,
    ) -> Result<Option<Present>, ApiError> {
        let entry = self.kind.get(key, operation).await?;
        Ok(entry.map(|entry| Present::Stored(Box::new(entry))))
    }
}
