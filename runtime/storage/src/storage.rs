//! The [`Storage`] trait: its documentation is the contract that every backend keeps.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

/// A point in the history of a store: the value of one counter for the whole store. The first write gets at least 1.
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

/// The parameters of a list.
#[derive(Clone, Debug, Default)]
pub struct ListRequest {
    /// Every key that begins with this.
    pub prefix: String,
    /// Start at this key; empty for the whole prefix.
    pub start: String,
    /// Maximum entries; 0 for all.
    pub limit: usize,
    /// The state at exactly this revision; `None` for the present one.
    pub at: Option<Revision>,
    /// Whether the caller does not need [`Page::remaining`]: a store that would have to count for it then omits it.
    pub uncounted: bool,
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Entries in ascending byte order of their keys.
    pub entries: Vec<Entry>,
    /// The revision of this state: the requested one, or the store's current one.
    pub revision: Revision,
    /// Whether entries follow the last one.
    pub more: bool,
    /// Number of entries after the last one, if it is known without reading them.
    pub remaining: Option<u64>,
}

/// The type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The key was absent before.
    Created,
    /// The value of the key was replaced.
    Updated,
    /// The key was removed (by a delete or because its time to live ended).
    Deleted,
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The type of the change.
    pub kind: EventKind,
    /// The key that changed.
    pub key: Key,
    /// The new bytes; empty for [`EventKind::Deleted`].
    pub value: Bytes,
    /// The value and revision before; `None` for [`EventKind::Created`].
    pub previous: Option<(Bytes, Revision)>,
    /// The revision of the change.
    pub revision: Revision,
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// Changes after this call.
    Now,
    /// Every change with a revision greater than this one.
    After(Revision),
}

/// An item of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchItem {
    /// A change below the prefix.
    Event(Event),
    /// Every change up to this revision was delivered.
    Progress(Revision),
}

/// The changes below a prefix, in order of revision, with [`WatchItem::Progress`] among them: one when everything up to
/// the present is delivered for the first time, one soon after [`Storage::request_progress`], and about one per second
/// while the store moves on without a change below the prefix. Ends after an error; dropping it ends the watch.
pub type WatchStream = BoxStream<'static, Result<WatchItem, StorageError>>;

/// Why a storage operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// `create`: the key exists; this is its entry.
    #[error("key {:?} exists at revision {}", .0.key, .0.revision)]
    Exists(Box<Entry>),
    /// `update_if`, `delete_if`: the key is not at the expected revision; its entry is included if it exists.
    #[error("key {key:?} is not at the expected revision")]
    Conflict {
        /// The key.
        key: Key,
        /// Its present entry; `None` if it is absent.
        present: Option<Box<Entry>>,
    },
    /// The requested revision is no longer kept. The state at `compacted` itself and every change after it are.
    #[error("revision {requested} is compacted, history begins after {compacted}")]
    Compacted {
        /// The requested revision.
        requested: Revision,
        /// The newest revision whose change is gone.
        compacted: Revision,
    },
    /// The requested revision does not exist yet.
    #[error("revision {requested} is in the future, the store is at {current}")]
    Future {
        /// The requested revision.
        requested: Revision,
        /// The current revision of the store.
        current: Revision,
    },
    /// The store was restored from a backup, or emptied. Acknowledged writes are gone, and revisions up to `seen` may
    /// stand for other states. Ends every open watch, once.
    #[error(
        "the store was restored or emptied: it had reached revision {seen}, and is at {current} with another past"
    )]
    Restored {
        /// The newest revision that was seen before.
        seen: Revision,
        /// The current revision; not always less.
        current: Revision,
    },
    /// The watcher did not read for too long and was dropped; it can resume from its last revision. The backends of
    /// this crate never return this: their slow watchers read history, until that is compacted.
    #[error("the watcher was too slow and was dropped")]
    Lagged,
    /// The stored data is damaged; names the key, or the file where no key is known.
    #[error("corrupt store: {0}")]
    Corrupt(String),
    /// The store cannot be reached, is closed, or failed for a temporary reason. A retry may help; reads may still
    /// work.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The store refuses the operation, and a retry does not help: its disk is full or read-only, its files are gone,
    /// etcd has reached its quota, or the value is too large. Reads may still work. The text is shown to clients.
    #[error("{0}")]
    Refused(String),
}

/// A key-value store of bytes, with one history.
///
/// Every method may wait for I/O but never blocks the calling thread. A call whose future is dropped may still take
/// effect. Keys are compared as bytes; values are opaque.
#[async_trait]
pub trait Storage: Send + Sync + fmt::Debug + 'static {
    /// Returns the value of a key and the revision of the read, which is never older than the last write that was
    /// acknowledged, to any caller, before this call.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] naming the key, never a wrong value.
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError>;

    /// Returns a page of the entries below a prefix, all at one revision. The prefix is compared as bytes: one that
    /// names a collection ends with a slash. To read further pages of a list, pass the first page's revision as `at`.
    ///
    /// # Errors
    /// [`StorageError::Compacted`] and [`StorageError::Future`] when `at` is not in the kept history;
    /// [`StorageError::Corrupt`] for the whole page if one of its entries is damaged.
    async fn list(&self, request: ListRequest) -> Result<Page, StorageError>;

    /// Returns the current number of keys below a prefix.
    async fn count(&self, prefix: &str) -> Result<u64, StorageError>;

    /// Creates a key that must not exist. With `ttl` the key is removed, as by a delete, after that time.
    ///
    /// # Errors
    /// [`StorageError::Exists`].
    async fn create(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError>;

    /// Replaces the value of a key that must be at revision `expected`. `ttl` starts again; `None` removes it.
    ///
    /// # Errors
    /// [`StorageError::Conflict`] with the present entry.
    async fn update_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError>;

    /// Replaces the value of a key that must be at revision `expected`. The key keeps the time at which it is removed, if it
    /// has one: the value says the same in another form, so that it must not live longer.
    ///
    /// # Errors
    /// [`StorageError::Conflict`] with the present entry.
    async fn rewrite_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError>;

    /// Deletes a key that must be at revision `expected`; returns the revision of the delete.
    ///
    /// # Errors
    /// [`StorageError::Conflict`] with the present entry.
    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError>;

    /// Watches the changes below a prefix. Every write acknowledged after the call returns is delivered, once, in order
    /// of revision. With a start in the future, the changes up to it are skipped.
    ///
    /// # Errors
    /// [`StorageError::Compacted`] when the start is no longer kept: at once, or as the last item of the stream for a
    /// watcher that was behind for longer than history is kept.
    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError>;

    /// Requests a [`WatchItem::Progress`] from every open watch soon, for callers that wait for a revision and cannot
    /// wait for the next regular one.
    async fn request_progress(&self) -> Result<(), StorageError>;

    /// Whether other processes may write to the store. Of the servers over a shared store one runs the controllers, which
    /// they decide by a lease in it. Default false.
    fn is_shared(&self) -> bool {
        false
    }

    /// The revision of the newest write.
    async fn current_revision(&self) -> Result<Revision, StorageError>;

    /// Returns whether the store answers, accepts writes and is intact, as far as it knows. It does not search for
    /// damage, because probes call it every few seconds.
    ///
    /// # Errors
    /// [`StorageError::Unavailable`] when it does not answer, [`StorageError::Refused`] when it accepts no writes,
    /// [`StorageError::Corrupt`] when damage was found since the start. The text is shown to clients, so it names no
    /// key.
    async fn health(&self) -> Result<(), StorageError> {
        self.current_revision().await.map(|_| ())
    }

    /// The size of the store in bytes on its medium; `None` if there is no such number.
    ///
    /// # Errors
    /// When the size cannot be read.
    async fn size_bytes(&self) -> Result<Option<u64>, StorageError> {
        Ok(None)
    }

    /// Compacts the changes up to and including `revision`; present values and the state at `revision` stay. Backends
    /// also compact by themselves.
    ///
    /// # Errors
    /// [`StorageError::Future`] beyond the current revision. A revision that is already compacted is no error and does
    /// nothing.
    async fn compact(&self, revision: Revision) -> Result<(), StorageError>;

    /// Finishes queued requests and releases the store; later calls return [`StorageError::Unavailable`], and open
    /// watches end with it. Closing again does nothing.
    async fn close(&self);
}
