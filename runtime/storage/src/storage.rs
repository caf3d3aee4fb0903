//! The [`Storage`] trait: its documentation is the contract that every backend keeps.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

/// A point in the history of a store. One counter for the whole store; the first write gets at least 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The key of an object: `/registry/wardle.example.com/flunders/NAMESPACE/NAME`. Compared as bytes.
pub type Key = String;

/// A stored value with the revision that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: Key,
    /// The bytes.
    pub value: Bytes,
    /// The revision of the write that put them there.
    pub revision: Revision,
}

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct ListRequest {
    /// Every key that begins with this.
    pub prefix: String,
    /// Only keys at or after this one; empty for the whole prefix.
    pub start: String,
    /// At most so many entries; 0 for all.
    pub limit: usize,
    /// The state at exactly this revision; `None` for the present one.
    pub at: Option<Revision>,
    /// Nobody asks for [`Page::remaining`]: a store that would have to count for it leaves it out.
    pub uncounted: bool,
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Entries in ascending byte order of their keys.
    pub entries: Vec<Entry>,
    /// The revision whose state this is: the one asked for, or the store's present one.
    pub revision: Revision,
    /// Whether entries follow the last one.
    pub more: bool,
    /// How many entries follow the last one, when that is known without reading them.
    pub remaining: Option<u64>,
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// It was written where nothing was.
    Created,
    /// It was overwritten.
    Updated,
    /// It was removed (by a delete or because its time to live ended).
    Deleted,
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// To which key.
    pub key: Key,
    /// The new bytes; empty for [`EventKind::Deleted`].
    pub value: Bytes,
    /// The bytes and revision before; `None` for [`EventKind::Created`].
    pub previous: Option<(Bytes, Revision)>,
    /// The revision of the change.
    pub revision: Revision,
}

/// From where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// Changes after this call.
    Now,
    /// Every change with a revision greater than this one.
    After(Revision),
}

/// What a watch delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchItem {
    /// A change below the prefix.
    Event(Event),
    /// Every change up to this revision was delivered.
    Progress(Revision),
}

/// The changes below a prefix, in order of revision, with [`WatchItem::Progress`] among them: one when everything up to
/// the present is delivered for the first time, one soon after [`Storage::request_progress`], and one about every second
/// in which the store moved on without a change below the prefix. Ends after an error; dropping it ends the watch.
pub type WatchStream = BoxStream<'static, Result<WatchItem, StorageError>>;

/// Why the store did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// `create`: the key is there; this is what it holds.
    #[error("key {:?} exists at revision {}", .0.key, .0.revision)]
    Exists(Box<Entry>),
    /// `update_if`, `delete_if`: the key does not hold the expected revision; this is what it holds, if anything.
    #[error("key {key:?} is not at the expected revision")]
    Conflict {
        /// The key.
        key: Key,
        /// What it holds now; `None` when it is absent.
        present: Option<Box<Entry>>,
    },
    /// The revision asked for is no longer kept. The state at `compacted` itself and every change after it are.
    #[error("revision {requested} is compacted, history begins after {compacted}")]
    Compacted {
        /// What was asked for.
        requested: Revision,
        /// The newest revision whose change is gone.
        compacted: Revision,
    },
    /// The revision asked for does not exist yet.
    #[error("revision {requested} is in the future, the store is at {current}")]
    Future {
        /// What was asked for.
        requested: Revision,
        /// Where the store is.
        current: Revision,
    },
    /// The store is another one than before: restored from a backup, or emptied. What it acknowledged is gone, and
    /// revisions up to `seen` may stand for something else. Ends every open watch, once.
    #[error(
        "the store was restored or emptied: it had reached revision {seen}, and is at {current} with another past"
    )]
    Restored {
        /// How far it had come.
        seen: Revision,
        /// Where it is now; not always less.
        current: Revision,
    },
    /// A watcher that did not read for too long was dropped; it resumes from its last revision. The backends of this
    /// crate never answer so: their slow watchers read on from history, until that is compacted.
    #[error("the watcher was too slow and was dropped")]
    Lagged,
    /// What the disk returned is not what was written; names the key, or the file where no key is known.
    #[error("corrupt store: {0}")]
    Corrupt(String),
    /// The store cannot be reached, is closed, or failed for a reason that may pass; asking again may help, reads may go on.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The store will not do it, however often it is asked: its disk is full or read-only, its files are gone, etcd has
    /// reached its quota, or the value is too large. Reads may go on. The text is shown to clients.
    #[error("{0}")]
    Refused(String),
}

/// A store of bytes under keys, with one history.
///
/// Every method may wait for I/O but never blocks the thread of the caller. A call whose future is dropped may still
/// take effect. Keys are compared as bytes; values are opaque.
#[async_trait]
pub trait Storage: Send + Sync + fmt::Debug + 'static {
    /// The value under a key and the revision at which the read was made, never older than the last write acknowledged
    /// to anyone before the call.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] naming the key, never a wrong value.
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError>;

    /// A page of the keys below a prefix, all as of one revision. The prefix is compared as bytes: one that names a
    /// collection ends with a slash. Pages of one list are read by passing the first page's revision as `at`.
    ///
    /// # Errors
    /// [`StorageError::Compacted`] and [`StorageError::Future`] when `at` is not in the kept history;
    /// [`StorageError::Corrupt`] for the whole page when one entry of it is.
    async fn list(&self, request: ListRequest) -> Result<Page, StorageError>;

    /// How many keys lie below a prefix now.
    async fn count(&self, prefix: &str) -> Result<u64, StorageError>;

    /// Writes where nothing is. With `ttl` the key is removed, as by a delete, when that time has passed.
    ///
    /// # Errors
    /// [`StorageError::Exists`].
    async fn create(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError>;

    /// Overwrites what was written at `expected`. A `ttl` begins anew; `None` lets the key live for ever.
    ///
    /// # Errors
    /// [`StorageError::Conflict`] with what is there.
    async fn update_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError>;

    /// Removes what was written at `expected`; gives the revision of the removal.
    ///
    /// # Errors
    /// [`StorageError::Conflict`] with what is there.
    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError>;

    /// Changes below a prefix. Every write acknowledged after the call returns is delivered, once, in order of revision.
    /// A start in the future waits, and what happens until then is left out.
    ///
    /// # Errors
    /// [`StorageError::Compacted`] when the start is no longer kept, at once or, for a watcher that stayed behind for
    /// longer than history is kept, as the last item of the stream.
    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError>;

    /// Asks every open watch for a [`WatchItem::Progress`] soon, so that whoever waits for a revision need not wait for
    /// the next one that comes by itself.
    async fn request_progress(&self) -> Result<(), StorageError>;

    /// The revision of the newest write.
    async fn current_revision(&self) -> Result<Revision, StorageError>;

    /// Whether the store answers, takes writes and is whole, as far as it knows without looking for damage now: probes ask every few
    /// seconds.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] when it does not answer, [`StorageError::Refused`] when it takes no writes,
    /// [`StorageError::Corrupt`] when damage was found since the start. The text is shown to anybody, so it names no key.
    async fn health(&self) -> Result<(), StorageError> {
        self.current_revision().await.map(|_| ())
    }

    /// How many bytes the store takes where it is kept; `None` when there is no such number.
    ///
    /// # Errors
    /// When it cannot be asked.
    async fn size_bytes(&self) -> Result<Option<u64>, StorageError> {
        Ok(None)
    }

    /// Forgets the changes up to and including `revision`; present values and the state at `revision` stay. Backends
    /// also compact by themselves.
    ///
    /// # Errors
    /// [`StorageError::Future`] beyond the present revision. Below what is compacted already it does nothing.
    async fn compact(&self, revision: Revision) -> Result<(), StorageError>;

    /// Finishes what is queued and releases the store; later calls answer [`StorageError::Unavailable`], and open
    /// watches end with it. Closing again does nothing.
    async fn close(&self);
}
