//! What a write finds under a key: the object as the store has it or, to begin with, as the watch cache does.

use apiloom_storage::{Entry, Revision};

use super::document::Encoded;
use super::prepared::Prepared;

/// An object that is about to be changed.
#[derive(Debug)]
pub(crate) enum Present {
    /// As the watch cache has it, which may be behind.
    Cached(Encoded),
    /// As it is stored.
    Stored(Box<Entry>),
}

impl Present {
    /// The revision that wrote it.
    pub(crate) fn revision(&self) -> Revision {
        match self {
            Self::Cached(cached) => cached.revision(),
            Self::Stored(entry) => entry.revision,
        }
    }

    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Cached(cached) => cached.len(),
            Self::Stored(entry) => entry.value.len(),
        }
    }

    /// Whether it is known to be what would be stored. What the cache has is compared as it is served, so that it only
    /// says what is worth a look into the store.
    pub(crate) fn holds(&self, prepared: &Prepared) -> bool {
        match self {
            Self::Cached(cached) => prepared.shows(cached.json().whole(), cached.revision()),
            Self::Stored(entry) => entry.value == prepared.stored,
        }
    }

    /// Whether this is what is stored.
    pub(crate) fn is_certain(&self) -> bool {
        matches!(self, Self::Stored(_))
    }
}
