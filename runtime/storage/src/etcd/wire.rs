//! Conversions between etcd's messages and our types: revisions, ranges of keys, entries, events.

use bytes::Bytes;
use etcd_client::proto::{PbEvent, PbKeyValue, PbResponseHeader};

use crate::keys::prefix_end;
use crate::{Entry, Event, EventKind, Key, Revision, StorageError};

/// Converts etcd's signed revision, which is never negative.
pub(super) fn revision(number: i64) -> Revision {
    Revision(number.unsigned_abs())
}

/// Converts a revision for etcd; values above the range of `i64` become its maximum.
pub(super) fn number(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

/// The revision of a response; every response of etcd has one.
pub(super) fn header_revision(header: Option<&PbResponseHeader>) -> Revision {
    Revision(header.map_or(0, |header| header.revision.unsigned_abs()))
}

/// A range as etcd expects it: from the first key to the end, exclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: Vec<u8>,
    pub(super) end: Vec<u8>,
}

impl Range {
    /// The keys with this prefix, from `start` on; `None` if there can be none.
    pub(super) fn new(prefix: &str, start: &str) -> Option<Self> {
        let from = crate::keys::range_start(prefix, start);
        let end = prefix_end(prefix);
        if end.as_deref().is_some_and(|end| from >= end) {
            return None;
        }
        Some(Self {
            // A key has at least one byte; zero is the smallest.
            from: if from.is_empty() {
                vec![0]
            } else {
                from.into()
            },
            end: end.map_or_else(|| vec![0], String::into_bytes),
        })
    }

    /// Every key that begins with `prefix`.
    pub(super) fn of_prefix(prefix: &str) -> Self {
        Self::new(prefix, "").unwrap_or_else(Self::all)
    }

    /// Every key there is.
    pub(super) fn all() -> Self {
        Self {
            from: vec![0],
            end: vec![0],
        }
    }
}

fn key(bytes: Vec<u8>) -> Result<Key, StorageError> {
    String::from_utf8(bytes).map_err(|error| {
        let key = String::from_utf8_lossy(error.as_bytes()).into_owned();
        StorageError::Corrupt(format!("key {key:?} is not UTF-8"))
    })
}

/// Converts a stored pair to an entry.
pub(super) fn entry(pair: PbKeyValue) -> Result<Entry, StorageError> {
    Ok(Entry {
        key: key(pair.key)?,
        value: pair.value.into(),
        revision: revision(pair.mod_revision),
    })
}

/// Converts an event of an etcd watch; `None` if its key is not UTF-8, which no watcher can select.
pub(super) fn event(event: PbEvent) -> Option<Event> {
    let pair = event.kv?;
    let revision = revision(pair.mod_revision);
    // A deleted key has version 0, regardless of the type of the event.
    let kind = match pair.version {
        0 => EventKind::Deleted,
        1 => EventKind::Created,
        _ => EventKind::Updated,
    };
    let previous = event.prev_kv.map(|previous| {
        (
            Bytes::from(previous.value),
            self::revision(previous.mod_revision),
        )
    });
    Some(Event {
        kind,
        key: key(pair.key)
            .inspect_err(|error| tracing::warn!(%error, "skipping a change whose key is not UTF-8"))
            .ok()?,
        value: pair.value.into(),
        previous,
        revision,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_spelled_as_etcd_wants_them() {
        let check = |prefix, start, expected: Option<(&[u8], &[u8])>| {
            let range = Range::new(prefix, start);
            let range = range
                .as_ref()
                .map(|range| (&range.from[..], &range.end[..]));
            assert_eq!(range, expected, "{prefix:?} from {start:?}");
        };
        check("/r/", "", Some((b"/r/", b"/r0")));
        check("/r/", "/r/b", Some((b"/r/b", b"/r0")));
        check("/r/", "/a", Some((b"/r/", b"/r0")));
        check("/r/", "/s", None);
        check("", "", Some((b"\0", b"\0")));
        check("", "/r", Some((b"/r", b"\0")));
    }
}
