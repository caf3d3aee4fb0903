//! The objects of a watch that cannot be read, for followers that go on without them.
//!
//! A client's watch ends with the first such object. What follows all objects of a kind for the server itself must not: one
//! object would keep it from all others.

use std::collections::BTreeSet;
use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_storage::cache::Change;
use apiloom_storage::{Event, EventKind};

use crate::objects::cached_object::CachedObject;
use crate::objects::key::namespace_and_name;

/// Most keys that are remembered. With more, the kind counts as unreadable until it is listed again.
const MAX_KEYS: usize = 1000;

/// An object that a watch cannot show.
pub(super) struct FailedObject {
    pub(super) key: Arc<str>,
    pub(super) error: ApiError,
    /// Whether its present state is the one that cannot be read: not if it was deleted.
    pub(super) is_present: bool,
    /// Whether it stays so as long as nothing is written. The conversion by a webhook may succeed the next time.
    pub(super) is_lasting: bool,
}

impl FailedObject {
    /// A present one.
    pub(super) fn present(key: &str, error: ApiError, is_lasting: bool) -> Self {
        Self {
            key: key.into(),
            error,
            is_present: true,
            is_lasting,
        }
    }

    /// One that a change of the store is about.
    pub(super) fn stored(change: &Event, error: ApiError, is_awaited: bool) -> Self {
        Self {
            is_present: change.kind != EventKind::Deleted,
            ..Self::present(&change.key, error, !is_awaited)
        }
    }

    /// One that a change of the cache is about.
    pub(super) fn cached(change: &Change<CachedObject>, error: ApiError, is_awaited: bool) -> Self {
        let mut states = change.new.iter().chain(&change.old);
        let is_damaged = states.any(|item| item.object.is_err());
        Self {
            is_present: change.new.is_some(),
            ..Self::present(&change.key, error, !is_awaited || is_damaged)
        }
    }
}

/// The objects of a watch that cannot be read now.
#[derive(Debug, Default)]
pub(crate) struct UnreadableObjects {
    keys: BTreeSet<Arc<str>>,
    has_more: bool,
    /// Why the last one cannot be read.
    last: String,
}

impl UnreadableObjects {
    /// Notes an object that cannot be read.
    pub(super) fn note(&mut self, failed: FailedObject) {
        if !failed.is_present {
            self.keys.remove(&failed.key);
            return;
        }
        self.last = failed.error.message;
        if self.keys.len() < MAX_KEYS {
            self.keys.insert(failed.key);
        } else {
            self.has_more |= !self.keys.contains(&failed.key);
        }
    }

    /// Notes that an object can be read.
    pub(super) fn forget(&mut self, key: &str) {
        self.keys.remove(key);
    }

    /// The names of those that are remembered.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| namespace_and_name(key).1)
    }

    /// Why one of them cannot be read; `None` if there are none.
    pub(crate) fn problem(&self) -> Option<&str> {
        let has_some = self.has_more || !self.keys.is_empty();
        has_some.then_some(&*self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(key: &str) -> FailedObject {
        FailedObject::present(key, ApiError::internal("damaged".to_owned()), true)
    }

    #[test]
    fn objects_are_unreadable_until_they_are_written_or_deleted() {
        let mut objects = UnreadableObjects::default();
        assert_eq!(objects.problem(), None);
        objects.note(failed("/a"));
        objects.note(failed("/b"));
        objects.forget("/a");
        assert!(
            objects
                .problem()
                .is_some_and(|problem| problem.contains("damaged"))
        );
        let is_present = false;
        objects.note(FailedObject {
            is_present,
            ..failed("/b")
        });
        assert_eq!(objects.problem(), None);
    }

    #[test]
    fn more_than_are_remembered_stay_unreadable() {
        let mut objects = UnreadableObjects::default();
        let keys = || (0..=MAX_KEYS).map(|number| format!("/{number}"));
        keys().for_each(|key| objects.note(failed(&key)));
        assert_eq!(objects.keys.len(), MAX_KEYS);
        keys().for_each(|key| objects.forget(&key));
        assert!(objects.problem().is_some());
    }
}
