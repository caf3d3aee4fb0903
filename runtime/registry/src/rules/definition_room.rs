//! The memory that all definitions together make a server keep: a definition that does not fit is refused before anything of it is
//! compiled, and one that is stored all the same is not served.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use apiloom_storage::Revision;
use parking_lot::Mutex;

use crate::options::Reservation;

/// What a definition takes beside its schemas: its endpoints, watch cache, documents of discovery and OpenAPI. So their number has a bound too.
const DEFINITION: usize = 16 * 1024;

/// The definitions that are served, with the memory of each.
#[derive(Debug)]
pub struct DefinitionRoom {
    most: AtomicUsize,
    taken: Mutex<Usage>,
}

/// What of the room is in use.
#[derive(Debug, Default)]
struct Usage {
    by_name: HashMap<String, usize>,
    sum: usize,
    /// For definitions that are being written, or were and are not seen yet.
    reserved: Vec<Claim>,
    /// Number of reservations so far.
    reservations: u64,
}

/// A claim to room, for a definition that is being written.
#[derive(Debug)]
struct Claim {
    number: u64,
    name: String,
    bytes: usize,
    /// The revision at which it was written.
    written: Option<Revision>,
    /// The revision at which the controller has seen it, which may be before the write has returned.
    seen: Revision,
}

impl Claim {
    /// Whether the definition that was written has been seen.
    fn is_over(&self) -> bool {
        self.written.is_some_and(|written| written <= self.seen)
    }
}

impl Usage {
    fn present(&self, name: &str) -> usize {
        self.by_name.get(name).copied().unwrap_or_default()
    }

    /// What all definitions but one take, with what is reserved for them.
    fn of_others(&self, name: &str) -> usize {
        let others = self.reserved.iter().filter(|other| other.name != name);
        let more = others.map(|other| other.bytes.saturating_sub(self.present(&other.name)));
        more.fold(self.sum - self.present(name), usize::saturating_add)
    }
}

/// A definition for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    requested: usize,
    used: usize,
    most: usize,
}

impl NoRoom {
    /// What was asked for, and what there is, in the words of Kubernetes' quotas.
    pub fn message(self) -> String {
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
    pub fn take(&self, name: &str, schemas: usize) -> Result<(), NoRoom> {
        let mut taken = self.taken.lock();
        let bytes = self.fitting(&taken, name, schemas)?;
        taken.sum = (taken.sum - taken.present(name)).saturating_add(bytes);
        taken.by_name.insert(name.to_owned(), bytes);
        Ok(())
    }

    /// Reserves room for a definition that is being written, so that no other one gets it meanwhile.
    ///
    /// # Errors
    /// There is none.
    pub fn reserve(self: &Arc<Self>, name: &str, schemas: usize) -> Result<ReservedRoom, NoRoom> {
        let mut taken = self.taken.lock();
        let bytes = self.fitting(&taken, name, schemas)?;
        taken.reservations += 1;
        let number = taken.reservations;
        taken.reserved.push(Claim {
            number,
            name: name.to_owned(),
            bytes,
            written: None,
            seen: Revision::default(),
        });
        Ok(ReservedRoom {
            room: Arc::clone(self),
            number,
        })
    }

    /// Notes that a definition was seen at a revision, and has taken its room or needs none: what was reserved for it is given back.
    pub fn see(&self, name: &str, revision: Revision) {
        let mut taken = self.taken.lock();
        let own = taken.reserved.iter_mut();
        for reserved in own.filter(|reserved| reserved.name == name) {
            reserved.seen = revision.max(reserved.seen);
        }
        taken.reserved.retain(|reserved| !reserved.is_over());
    }

    /// Notes that there are no other definitions than these: some may have gone before they were seen.
    pub fn see_all(&self, exists: impl Fn(&str) -> bool) {
        let mut taken = self.taken.lock();
        let is_kept = |reserved: &Claim| reserved.written.is_none() || exists(&reserved.name);
        taken.reserved.retain(is_kept);
    }

    /// Gives the room of a definition back. Whether it had some.
    pub fn give(&self, name: &str) -> bool {
        let mut taken = self.taken.lock();
        let given = taken.by_name.remove(name);
        taken.sum -= given.unwrap_or_default();
        given.is_some()
    }

    /// The room that a definition takes, if there is as much.
    fn fitting(&self, taken: &Usage, name: &str, schemas: usize) -> Result<usize, NoRoom> {
        let requested = schemas.saturating_add(DEFINITION);
        let (used, most) = (taken.of_others(name), self.most.load(Ordering::Relaxed));
        if used.saturating_add(requested) <= most || requested <= taken.present(name) {
            return Ok(requested);
        }
        Err(NoRoom {
            requested,
            used,
            most,
        })
    }
}

/// Room that is reserved for a definition. It is given back when this is dropped, unless the definition was written: then it is kept
/// until the definition was [seen](DefinitionRoom::see).
#[derive(Debug)]
pub struct ReservedRoom {
    room: Arc<DefinitionRoom>,
    number: u64,
}

impl Reservation for ReservedRoom {
    fn settle(&self, revision: Revision) {
        let mut taken = self.room.taken.lock();
        let mut reserved = taken.reserved.iter_mut();
        if let Some(own) = reserved.find(|reserved| reserved.number == self.number) {
            own.written = Some(revision);
        }
        taken.reserved.retain(|reserved| !reserved.is_over());
    }
}

impl Drop for ReservedRoom {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock();
        let is_kept =
            |reserved: &Claim| reserved.number != self.number || reserved.written.is_some();
        taken.reserved.retain(is_kept);
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
        assert!(room.take("c", 0).is_err() && room.take("a", 41).is_err());
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
    /// Two definitions that were written at the same moment passed both.
    #[test]
    fn what_is_reserved_is_not_reserved_again() {
        let room = Arc::new(DefinitionRoom::new(2 * DEFINITION));
        let first = room.reserve("a", 0).unwrap();
        let second = room.reserve("b", 0).unwrap();
        assert!(room.reserve("c", 0).is_err() && room.take("c", 0).is_err());
        drop(first);
        let third = room.reserve("c", 0).unwrap();

        // A definition that was written keeps its room until it was seen, by what it takes then.
        second.settle(Revision(7));
        drop(second);
        room.see("b", Revision(6));
        room.see("c", Revision(7));
        assert!(room.reserve("d", 0).is_err());
        room.take("b", 0).unwrap();
        room.see("b", Revision(7));
        assert!(room.reserve("d", 0).is_err());
        room.give("b");
        drop(room.reserve("d", 0).unwrap());

        // The controller may see it before the write has returned.
        room.see("c", Revision(8));
        third.settle(Revision(8));
        drop(third);
        assert!(room.taken.lock().reserved.is_empty());

        // One that was deleted before it was seen is not listed any more.
        let [gone, listed] = ["e", "f"].map(|name| room.reserve(name, 0).unwrap());
        for written in [&gone, &listed] {
            written.settle(Revision(9));
        }
        drop((gone, listed));
        room.see_all(|name| name == "f");
        assert_eq!(room.taken.lock().reserved.len(), 1);
    }

    #[test]
    fn a_definition_is_replaced_within_its_room() {
        let room = Arc::new(DefinitionRoom::new(DEFINITION + 10));
        room.take("a", 10).unwrap();
        let [same, smaller] = [10, 5].map(|bytes| room.reserve("a", bytes).unwrap());
        drop((same, smaller));
        assert!(room.reserve("a", 11).is_err());
    }
}
