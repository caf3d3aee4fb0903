//! The model: the objects at every revision, from the responses to the writers.
//!
//! The response to a deletion has no revision. Deletions are made one after the other and there are no unknown writers,
//! so their revisions are those of no other write, in the order of the requests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::interest::Interest;
use crate::objects::{Form, Key, brief, in_version, shown_at};

/// A revision of the store.
pub(crate) type Revision = u64;

/// A write with a response, or one that was made in etcd directly.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub(crate) revision: Revision,
    /// Its index in a transaction of several writes, which all have one revision.
    pub(crate) place: Option<usize>,
    pub(crate) key: Key,
    /// In the stored version, with the revision; `None` for a deletion with a known revision.
    pub(crate) object: Option<Value>,
}

/// The deletions of one request.
#[derive(Clone, Debug)]
pub(crate) struct Deletion {
    /// The newest written revision before the request.
    pub(crate) after: Revision,
    pub(crate) keys: Vec<Key>,
}

/// One change of one object.
#[derive(Debug)]
struct Change {
    revision: Revision,
    key: Key,
    old: Option<Value>,
    new: Option<Value>,
}

/// An event that a watch must deliver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: &'static str,
    pub(crate) revision: Revision,
    pub(crate) object: Value,
}

/// The history of the objects of a store from its first revision to its last.
#[derive(Debug)]
pub(crate) struct Model {
    first: Revision,
    last: Revision,
    changes: Vec<Change>,
    /// The revision of each request's last deletion, in the order of the requests.
    deletions: Vec<Revision>,
}

impl Model {
    /// Builds the model of a store that is empty at `first`, from all writes up to `last`. The objects of one delete
    /// request are deleted in any order; `told` has the object that each revision deleted. The servers themselves wrote the
    /// revisions in `own`.
    ///
    /// # Errors
    /// When the number of revisions does not match the number of writes.
    pub(crate) fn new(
        [first, last]: [Revision; 2],
        puts: &[Put],
        deletions: &[Deletion],
        told: &BTreeMap<Revision, Key>,
        own: &BTreeSet<Revision>,
    ) -> Result<Self, String> {
        let mut writes: BTreeMap<Revision, Vec<Put>> = BTreeMap::new();
        for put in puts {
            let known = writes.entry(put.revision).or_default();
            match known.iter_mut().find(|known| known.key == put.key) {
                None => known.push(put.clone()),
                // The response to a write without a change.
                Some(known) if known.object == put.object => {
                    known.place = known.place.or(put.place);
                }
                Some(known) => {
                    return Err(format!("one revision, two objects: {known:?}, {put:?}"));
                }
            }
        }
        for writes in writes.values_mut() {
            writes.sort_by_key(|put| put.place);
        }
        let mut unknown = (first + 1..=last)
            .filter(|revision| !writes.contains_key(revision) && !own.contains(revision));
        let mut assigned = Vec::new();
        let mut revisions = Vec::new();
        for deletion in deletions {
            let mut keys: BTreeSet<&Key> = deletion.keys.iter().collect();
            let mut newest = deletion.after;
            for _ in &deletion.keys {
                let revision = unknown.next();
                let revision = revision.ok_or_else(|| format!("{deletion:?} has no revision"))?;
                if revision <= deletion.after {
                    return Err(format!("no write has revision {revision}: {deletion:?}"));
                }
                let key = match deletion.keys.as_slice() {
                    [key] => key,
                    _ => told
                        .get(&revision)
                        .filter(|key| keys.contains(key))
                        .ok_or_else(|| format!("{deletion:?} deletes nothing at {revision}"))?,
                };
                keys.remove(key);
                assigned.push((revision, key.clone()));
                newest = revision;
            }
            revisions.push(newest);
        }
        if let Some(revision) = unknown.next() {
            return Err(format!("no write has revision {revision}"));
        }
        for (revision, key) in assigned {
            let deleted = Put {
                revision,
                place: None,
                key,
                object: None,
            };
            writes.insert(revision, vec![deleted]);
        }
        let mut model = Self {
            first,
            last,
            changes: Vec::new(),
            deletions: revisions,
        };
        model.replay(writes)?;
        Ok(model)
    }

    fn replay(&mut self, writes: BTreeMap<Revision, Vec<Put>>) -> Result<(), String> {
        let mut state: BTreeMap<Key, Value> = BTreeMap::new();
        for put in writes.into_values().flatten() {
            let (key, revision) = (put.key, put.revision);
            let old = match &put.object {
                Some(new) => state.insert(key.clone(), new.clone()),
                None => Some(state.remove(&key).ok_or_else(|| {
                    format!("{key:?} is deleted at {revision} and was not there")
                })?),
            };
            self.changes.push(Change {
                revision,
                key,
                old,
                new: put.object,
            });
        }
        Ok(())
    }

    /// The first and the last revision.
    pub(crate) fn bounds(&self) -> [Revision; 2] {
        [self.first, self.last]
    }

    /// The number of changes.
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// The revision of the last deletion of the first `count` requests.
    pub(crate) fn deleted_by(&self, count: usize) -> Revision {
        let count = count.min(self.deletions.len());
        self.deletions[..count].last().copied().unwrap_or(0)
    }

    /// The expected view of one client.
    pub(crate) fn view<'a>(&'a self, interest: &'a Interest, form: Form) -> View<'a> {
        let wanted = |object: &Option<Value>, key: &Key| {
            let object = in_version(object.as_ref()?, interest.version);
            interest.matches(key, &object).then_some(object)
        };
        let changes = self
            .changes
            .iter()
            .filter(|change| change.key.resource == interest.resource);
        let seen = changes.filter_map(|change| {
            let (old, new) = (
                wanted(&change.old, &change.key),
                wanted(&change.new, &change.key),
            );
            let (kind, object) = match (&old, &new) {
                (None, None) => return None,
                (None, Some(new)) => ("ADDED", new.clone()),
                (Some(_), Some(new)) => ("MODIFIED", new.clone()),
                // The last state, at the revision of the change.
                (Some(old), None) => ("DELETED", shown_at(old, change.revision)),
            };
            let event = Event {
                kind,
                revision: change.revision,
                object: form.of_event(interest.resource, &object),
            };
            Some((event, &change.key, new))
        });
        View {
            interest,
            form,
            seen: seen.collect(),
        }
    }
}

/// The expected view of one client: its events, and the selected objects after each.
#[derive(Debug)]
pub(crate) struct View<'a> {
    interest: &'a Interest,
    form: Form,
    seen: Vec<(Event, &'a Key, Option<Value>)>,
}

impl View<'_> {
    /// The events after a revision.
    pub(crate) fn events_after(&self, revision: Revision) -> impl Iterator<Item = &Event> {
        let events = self.seen.iter().map(|(event, ..)| event);
        events.skip_while(move |event| event.revision <= revision)
    }

    /// The selected objects at a revision, in key order.
    pub(crate) fn objects_at(&self, revision: Revision) -> BTreeMap<&Key, &Value> {
        let mut objects = BTreeMap::new();
        for (event, key, new) in &self.seen {
            if event.revision > revision {
                break;
            }
            match new {
                Some(new) => objects.insert(*key, new),
                None => objects.remove(key),
            };
        }
        objects
    }

    /// The items of a list at a revision.
    pub(crate) fn items_at(&self, revision: Revision) -> Vec<Value> {
        let objects = self.objects_at(revision);
        let item = |object: &&Value| self.form.of_item(self.interest.resource, object);
        objects.values().map(item).collect()
    }

    /// The initial events of a watch that begins with the objects of a revision.
    pub(crate) fn additions_at(&self, revision: Revision) -> Vec<Event> {
        let objects = self.objects_at(revision);
        let added = |object: &&Value| Event {
            kind: "ADDED",
            revision: apiloom_tests::revision(object),
            object: self.form.of_event(self.interest.resource, object),
        };
        objects.values().map(added).collect()
    }

    /// The revisions at which the selection changes, up to one.
    pub(crate) fn turns(&self, upto: Revision) -> impl Iterator<Item = Revision> {
        let revisions = self.seen.iter().map(|(event, ..)| event.revision);
        revisions.take_while(move |revision| *revision <= upto)
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let object = match self.object.get("rows") {
            Some(rows) => format!("row {}", cut(&rows[0]["cells"].to_string())),
            None => cut(&brief(&self.object)),
        };
        write!(f, "{} at {}: {object}", self.kind, self.revision)
    }
}

/// The beginning of a text that may be long.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(400).collect()
}
