//! The current object of a write: as the store has it or, in the first attempt, as the watch cache has it.

use apiloom_storage::{Entry, Revision};

use super::document::EncodedObject;
use super::kind::Kind;
use super::prepared_object::PreparedObject;

/// The object that a write is about to change.
#[derive(Debug)]
pub(crate) enum PresentObject {
    /// From the watch cache, which may be behind the store.
    Cached(EncodedObject),
    /// From the store.
    Stored(Box<Entry>),
}

impl PresentObject {
    /// The revision of the write that produced it.
    pub(crate) fn revision(&self) -> Revision {
        match self {
            Self::Cached(cached) => cached.revision(),
            Self::Stored(entry) => entry.revision,
        }
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Cached(cached) => cached.len(),
            Self::Stored(entry) => entry.value.len(),
        }
    }

    /// Whether the write would change nothing. For a cached object this is a hint only: it may be behind, and it does not say
    /// how the stored object is encrypted, so the result must be confirmed with the stored object.
    pub(crate) fn is_unchanged_by(&self, kind: &Kind, prepared: &PreparedObject) -> bool {
        match self {
            Self::Cached(cached) => prepared.shows(cached.json().whole(), cached.revision()),
            Self::Stored(entry) => kind.is_stored_as(entry, prepared),
        }
    }

    /// The object of the cache, if it is not the stored one.
    pub(crate) fn cached(&self) -> Option<&EncodedObject> {
        match self {
            Self::Cached(cached) => Some(cached),
            Self::Stored(_) => None,
        }
    }
}
