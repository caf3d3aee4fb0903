//! What is in memory: the present entries, and the changes since the last compaction.

use std::collections::BTreeMap;
use std::time::SystemTime;

use apiloom::storage::{Entry, Event, EventKind, Key, ListRequest, Page, Revision, StorageError};
use bytes::Bytes;

use crate::log::{Line, decoded, time};

/// The state of a store.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) closed: bool,
    pub(crate) revision: Revision,
    compacted: Revision,
    present: BTreeMap<Key, Value>,
    /// The present keys with a time to live, and when it ends.
    expiring: BTreeMap<Key, SystemTime>,
    /// In order of revision.
    changes: Vec<Event>,
}

/// A value and the revision that wrote it.
type Value = (Bytes, Revision);

impl State {
    /// Does what a line of the log says.
    pub(crate) fn apply(&mut self, line: Line) {
        match line {
            Line::Put {
                revision,
                key,
                value,
                expires,
            } => {
                // The reader of the log checked it, and the writer made it.
                let value = decoded(&value).unwrap_or_default();
                match expires {
                    Some(expires) => self.expiring.insert(key.clone(), time(expires)),
                    None => self.expiring.remove(&key),
                };
                let revision = Revision(revision);
                let previous = self.present.insert(key.clone(), (value.clone(), revision));
                let kind = match previous {
                    Some(_) => EventKind::Updated,
                    None => EventKind::Created,
                };
                self.record(Event {
                    kind,
                    key,
                    value,
                    previous,
                    revision,
                });
            }
            Line::Delete { revision, key } => {
                self.expiring.remove(&key);
                let previous = self.present.remove(&key);
                self.record(Event {
                    kind: EventKind::Deleted,
                    key,
                    value: Bytes::new(),
                    previous,
                    revision: Revision(revision),
                });
            }
            Line::Compact { revision } => {
                self.compacted = self.compacted.max(Revision(revision));
                let kept = self.after(self.compacted).to_vec();
                self.changes = kept;
            }
        }
    }

    fn record(&mut self, event: Event) {
        self.revision = event.revision;
        self.changes.push(event);
    }

    pub(crate) fn next_revision(&self) -> Revision {
        Revision(self.revision.0 + 1)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<Entry> {
        let (key, value) = self.present.get_key_value(key)?;
        Some(entry(key, value))
    }

    /// The key must be at this revision.
    pub(crate) fn check(&self, key: &str, expected: Revision) -> Result<(), StorageError> {
        let present = self.entry(key);
        match present {
            Some(present) if present.revision == expected => Ok(()),
            present => Err(StorageError::Conflict {
                key: key.to_owned(),
                present: present.map(Box::new),
            }),
        }
    }

    /// The changes after this revision must all be kept.
    pub(crate) fn check_kept(&self, after: Revision) -> Result<(), StorageError> {
        if after < self.compacted {
            Err(StorageError::Compacted {
                requested: after,
                compacted: self.compacted,
            })
        } else {
            Ok(())
        }
    }

    /// The kept changes after this revision.
    pub(crate) fn after(&self, revision: Revision) -> &[Event] {
        let first = self
            .changes
            .partition_point(|event| event.revision <= revision);
        &self.changes[first..]
    }

    /// When a key ends; `None` if it has no time to live.
    pub(crate) fn end_of(&self, key: &str) -> Option<SystemTime> {
        self.expiring.get(key).copied()
    }

    /// The key whose time ends next, its revision, and when that is.
    pub(crate) fn next_to_expire(&self) -> Option<(Key, Revision, SystemTime)> {
        let (key, at) = self.expiring.iter().min_by_key(|(_, at)| **at)?;
        let (_, revision) = self.present.get(key)?;
        Some((key.clone(), *revision, *at))
    }

    pub(crate) fn count(&self, prefix: &str) -> u64 {
        below(&self.present, prefix, "").count() as u64
    }

    pub(crate) fn list(&self, request: &ListRequest) -> Result<Page, StorageError> {
        let past;
        let (entries, revision) = match request.at {
            None => (&self.present, self.revision),
            Some(at) => {
                past = self.at(at)?;
                (&past, at)
            }
        };
        let limit = match request.limit {
            0 => usize::MAX,
            limit => limit,
        };
        let mut found = below(entries, &request.prefix, &request.start);
        let entries = found.by_ref().take(limit).collect();
        let remaining = found.count() as u64;
        Ok(Page {
            entries,
            revision,
            more: remaining > 0,
            remaining: Some(remaining),
        })
    }

    /// The entries as they were at a revision: later changes are undone, the newest first.
    fn at(&self, revision: Revision) -> Result<BTreeMap<Key, Value>, StorageError> {
        self.check_kept(revision)?;
        if revision > self.revision {
            return Err(StorageError::Future {
                requested: revision,
                current: self.revision,
            });
        }
        let mut entries = self.present.clone();
        for event in self.after(revision).iter().rev() {
            match &event.previous {
                Some(previous) => entries.insert(event.key.clone(), previous.clone()),
                None => entries.remove(&event.key),
            };
        }
        Ok(entries)
    }
}

fn entry(key: &Key, (value, revision): &Value) -> Entry {
    Entry {
        key: key.clone(),
        value: value.clone(),
        revision: *revision,
    }
}

/// The entries below a prefix from a key on.
fn below<'a>(
    entries: &'a BTreeMap<Key, Value>,
    prefix: &'a str,
    start: &str,
) -> impl Iterator<Item = Entry> + use<'a> {
    entries
        .range(start.max(prefix).to_owned()..)
        .take_while(move |(key, _)| key.starts_with(prefix))
        .map(|(key, value)| entry(key, value))
}
