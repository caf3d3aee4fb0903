//! The memory that all definitions together make a server keep: a definition that does not fit is refused before anything of it is
//! compiled, and one that is stored all the same is not served.

#![cfg_attr(
    not(feature = "apis-apiextensions"),
    allow(dead_code, reason = "there are no definitions")
)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// What a definition takes beside its schemas: its endpoints, watch cache, documents of discovery and OpenAPI. So their number has a bound too.
const DEFINITION: usize = 16 * 1024;

/// The definitions that are served, with the memory of each.
#[derive(Debug)]
pub(crate) struct DefinitionRoom {
    most: AtomicUsize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    by_name: HashMap<String, usize>,
    sum: usize,
}

/// A definition for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom {
    requested: usize,
    used: usize,
    most: usize,
}

impl NoRoom {
    /// What was asked for, and what there is, in the words of Kubernetes' quotas.
    pub(crate) fn message(self) -> String {
        let Self {
            requested,
            used,
            most,
        } = self;
        format!(
            "exceeded quota: definitions, requested: memory={requested}, used: memory={used}, limited: memory={most}; \
             delete definitions or make them smaller, or start the server with a larger --max-definition-bytes"
        )
    }
}

impl DefinitionRoom {
    /// With this memory for all definitions together, in bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most: AtomicUsize::new(most),
            taken: Mutex::default(),
        }
    }

    /// Sets the memory of all definitions together.
    pub(crate) fn set_most(&self, bytes: usize) {
        self.most.store(bytes, Ordering::Relaxed);
    }

    /// Takes room for a definition whose schemas have this footprint, in place of what it had.
    ///
    /// # Errors
    /// There is none; the definition has what it had.
    pub(crate) fn take(&self, name: &str, schemas: usize) -> Result<(), NoRoom> {
        let mut taken = self.taken.lock();
        let sum = self.sum_with(&taken, name, schemas)?;
        taken.sum = sum;
        taken
            .by_name
            .insert(name.to_owned(), schemas.saturating_add(DEFINITION));
        Ok(())
    }

    /// Gives the room of a definition back. Whether it had some.
    pub(crate) fn give(&self, name: &str) -> bool {
        let mut taken = self.taken.lock();
        let given = taken.by_name.remove(name);
        taken.sum -= given.unwrap_or_default();
        given.is_some()
    }

    /// Fails if [`Self::take`] would.
    pub(crate) fn check(&self, name: &str, schemas: usize) -> Result<(), NoRoom> {
        self.sum_with(&self.taken.lock(), name, schemas).map(drop)
    }

    fn sum_with(&self, taken: &Taken, name: &str, schemas: usize) -> Result<usize, NoRoom> {
        let requested = schemas.saturating_add(DEFINITION);
        let present = taken.by_name.get(name).copied().unwrap_or_default();
        let (used, most) = (taken.sum - present, self.most.load(Ordering::Relaxed));
        let sum = used.saturating_add(requested);
        if sum <= most || requested <= present {
            return Ok(sum);
        }
        Err(NoRoom {
            requested,
            used,
            most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_have_room_in_sum() {
        let room = DefinitionRoom::new(2 * DEFINITION + 100);
        room.take("a", 40).unwrap();
        room.take("b", 60).unwrap();
        let full = room.take("c", 0).unwrap_err();
        let message = "exceeded quota: definitions, requested: memory=16384, used: memory=32868, limited: memory=32868; delete";
        assert!(full.message().starts_with(message), "{}", full.message());
        assert!(room.check("c", 0).is_err() && room.check("a", 41).is_err());
        room.take("a", 20).unwrap();
        room.take("b", 80).unwrap();
        assert!(room.give("a") && !room.give("a") && !room.give("c"));
        room.take("c", 20).unwrap();
    }

    #[test]
    fn what_does_not_grow_is_allowed_beyond_the_bound() {
        let room = DefinitionRoom::new(usize::MAX);
        room.take("a", 100).unwrap();
        room.set_most(10);
        room.take("a", 90).unwrap();
        assert!(room.take("a", 91).is_err());
        assert!(room.take("b", 0).is_err());
    }
}
