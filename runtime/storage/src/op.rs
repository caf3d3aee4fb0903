//! A write as a backend sees it, and its precondition.

use std::time::Duration;

use bytes::Bytes;

use crate::{Entry, EventKind, Revision, StorageError};

/// When a written key is removed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expiry {
    Never,
    After(Duration),
    /// When it was to be removed before the write.
    Kept,
}

impl From<Option<Duration>> for Expiry {
    fn from(ttl: Option<Duration>) -> Self {
        ttl.map_or(Self::Never, Self::After)
    }
}

/// The operation of a write.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Create {
        value: Bytes,
        ttl: Option<Duration>,
    },
    Update {
        expected: Revision,
        value: Bytes,
        expiry: Expiry,
    },
    Delete {
        expected: Revision,
    },
}

impl Op {
    /// Whether the write is allowed while the key holds `present`.
    pub(crate) fn is_allowed(&self, present: Option<Revision>) -> bool {
        match self {
            Op::Create { .. } => present.is_none(),
            Op::Update { expected, .. } | Op::Delete { expected } => present == Some(*expected),
        }
    }

    /// The error if it is not allowed.
    pub(crate) fn refusal(&self, key: &str, present: Option<Entry>) -> StorageError {
        match (self, present) {
            (Op::Create { .. }, Some(present)) => StorageError::Exists(Box::new(present)),
            (_, present) => StorageError::Conflict {
                key: key.to_owned(),
                present: present.map(Box::new),
            },
        }
    }

    pub(crate) fn kind(&self) -> EventKind {
        match self {
            Op::Create { .. } => EventKind::Created,
            Op::Update { .. } => EventKind::Updated,
            Op::Delete { .. } => EventKind::Deleted,
        }
    }

    /// The new value; `None` for a delete.
    pub(crate) fn value(&self) -> Option<&Bytes> {
        match self {
            Op::Create { value, .. } | Op::Update { value, .. } => Some(value),
            Op::Delete { .. } => None,
        }
    }

    pub(crate) fn expiry(&self) -> Expiry {
        match self {
            Op::Create { ttl, .. } => (*ttl).into(),
            Op::Update { expiry, .. } => *expiry,
            Op::Delete { .. } => Expiry::Never,
        }
    }
}
