//! The window of a cache: the revisions for which it can answer.

use crate::Revision;

/// Why the cache cannot answer for a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutsideWindow {
    /// The cache is not filled: not yet, or not again after the store compacted changes that the cache had not seen.
    #[error("the cache is not filled")]
    NotFilled,
    /// The changes since then are no longer kept.
    #[error("revision {requested} is before the window, which begins after {oldest}")]
    TooOld {
        /// The requested revision.
        requested: Revision,
        /// The oldest revision whose state is known.
        oldest: Revision,
    },
    /// The cache has not reached the revision yet.
    #[error("revision {requested} is in the future, the cache is at {current}")]
    Future {
        /// The requested revision.
        requested: Revision,
        /// The revision of the cache.
        current: Revision,
    },
}
