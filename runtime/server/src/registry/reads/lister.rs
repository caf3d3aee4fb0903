//! All objects of one kind, typed and in memory, for admission plugins and strategies.
//!
//! One background task lists and watches the store and decodes each change once. The invariant: an answer shows every
//! write of the kind that this process acknowledged before the call. Where several servers share a store, the writes of
//! the others arrive as the watch delivers them, within milliseconds: waiting for them too would cost a read of the
//! store for every write that a plugin judges. So what depends on an object being there asks [`Lister::get`], which
//! looks into the store before it says no; a rule over [`Lister::list`] holds for what others wrote a moment ago only
//! when it has arrived.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use apiloom_meta::{ApiError, GroupResource, Object, Resource};
use apiloom_storage::{EventKind, ListRequest, Revision, StorageError, WatchItem, WatchStart};
use futures_util::StreamExt as _;
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::registry::objects::kind::Kind;
use crate::registry::objects::kind_version::VersionIndex;
use crate::registry::rules::strategy::typed;

/// How long a read waits for the watch to catch up; upstream's plugins wait as long before they refuse.
const CATCH_UP: Duration = Duration::from_secs(10);

/// How long the task rests before it reads a store again that failed: twice as long each time, so that a store that is
/// away for long does not fill the log, and less than readers wait.
const FIRST_REST: Duration = Duration::from_millis(100);
const LAST_REST: Duration = Duration::from_secs(5);

/// The objects of a kind, kept in memory by a watch on the store. Cheap to clone.
pub struct Lister<K> {
    core: Arc<ListerCore>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self {
            core: Arc::clone(&self.core),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl<K: Resource> Lister<K> {
    pub(crate) fn new(core: Arc<ListerCore>) -> Self {
        Self {
            core,
            kind: PhantomData,
        }
    }
    /// Every object, in key order, with every write that this server acknowledged before the call; those of other servers
    /// over the same store follow within milliseconds. Reads no storage: it waits for the watch to catch up.
    ///
    /// # Errors
    /// When the watch is broken and does not come back in time.
    pub async fn list(&self) -> Result<Vec<Arc<K>>, ApiError> {
        self.core.catch_up().await?;
        let objects = self.core.objects.read();
        Ok(objects
            .values()
            .filter_map(|object| Arc::clone(object).downcast().ok())
            .collect())
    }
    /// One object, as new as in [`Lister::list`]; `namespace` is empty for cluster-scoped kinds. `None` only when the
    /// store, which is asked about what is not in memory, does not have it now, written by this server or another.
    ///
    /// # Errors
    /// As [`Lister::list`]; when the store cannot be read.
    pub async fn get(&self, namespace: &str, name: &str) -> Result<Option<Arc<K>>, ApiError> {
        let Some(source) = &self.core.source else {
            return Ok(None);
        };
        self.core.catch_up().await?;
        let key = format!(
            "{}{name}",
            source
                .kind
                .prefix((!namespace.is_empty()).then_some(namespace))
        );
        let known = self.core.objects.read().get(&key).cloned();
        let object = match known {
            Some(object) => Some(object),
            None => source.look_up(&key).await?,
        };
        Ok(object.and_then(|object| object.downcast().ok()))
    }
}

type Typed = Arc<dyn Any + Send + Sync>;

/// What a lister reads: a kind, in a version, decoded to its type.
struct Source {
    kind: Arc<Kind>,
    version: VersionIndex,
    decode: fn(&Object) -> Result<Typed, serde_json::Error>,
}

/// A lister without its type.
pub(crate) struct ListerCore {
    /// `None` when the kind is not registered, which keeps the registry from being built.
    source: Option<Source>,
    objects: RwLock<BTreeMap<String, Typed>>,
    /// Every change up to this revision is in `objects`; 0 before the first list.
    seen: watch::Sender<Revision>,
}

impl fmt::Debug for ListerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = self.source.as_ref().map(|s| s.kind.resource.to_string());
        f.debug_struct("Lister")
            .field("resource", &resource)
            .field("seen", &*self.seen.borrow())
            .finish()
    }
}

impl ListerCore {
    /// What it lists; `None` for a kind that is not registered.
    pub(crate) fn resource(&self) -> Option<&GroupResource> {
        self.source.as_ref().map(|source| &source.kind.resource)
    }

    pub(crate) fn new<K: Resource>(kind: Arc<Kind>, version: VersionIndex) -> Self {
        let decode = |object: &Object| Ok(Arc::new(typed::<K>(object)?) as Typed);
        Self {
            source: Some(Source {
                kind,
                version,
                decode,
            }),
            ..Self::unregistered()
        }
    }

    pub(crate) fn unregistered() -> Self {
        Self {
            source: None,
            objects: RwLock::default(),
            seen: watch::Sender::new(Revision(0)),
        }
    }

    /// Waits until every write that this process acknowledged before the call is seen. The newest one is known without a
    /// read, and an event of the watch, which is what it waits for, follows it at once.
    async fn catch_up(&self) -> Result<(), ApiError> {
        // At least 1, so that a read before the first list waits for it.
        let newest = self
            .source
            .as_ref()
            .map_or(0, |s| s.kind.newest_write.load(Ordering::Acquire))
            .max(1);
        let mut seen = self.seen.subscribe();
        let caught_up =
            tokio::time::timeout(CATCH_UP, seen.wait_for(|seen| seen.0 >= newest)).await;
        if matches!(caught_up, Ok(Ok(_))) {
            Ok(())
        } else {
            Err(ApiError::internal_text("not yet ready to handle request"))
        }
    }

    /// Waits for the first list.
    pub(crate) async fn ready(&self) -> Result<(), StorageError> {
        self.catch_up()
            .await
            .map_err(|error| StorageError::Unavailable(error.message))
    }

    /// Keeps the objects up to date; never returns.
    pub(crate) async fn run(self: Arc<Self>) {
        let Some(source) = &self.source else { return };
        let mut rest = FIRST_REST;
        loop {
            match self.follow(source, &mut rest).await {
                Ok(()) => {
                    tracing::debug!(resource = %source.kind.resource, "a lister's watch ended, listing again");
                }
                Err(error) => {
                    tracing::warn!(resource = %source.kind.resource, %error, "a lister lost its watch, listing again");
                }
            }
            tokio::time::sleep(rest).await;
            rest = (rest * 2).min(LAST_REST);
        }
    }

    /// Lists, then applies changes until the watch ends. A watch that delivers ends the growing of `rest`.
    async fn follow(&self, source: &Source, rest: &mut Duration) -> Result<(), StorageError> {
        let store = &source.kind.store;
        let prefix = source.kind.prefix(None);
        let page = store
            .list(ListRequest {
                prefix: prefix.clone(),
                ..ListRequest::default()
            })
            .await?;
        let mut decoded = BTreeMap::new();
        for entry in &page.entries {
            // Others have their turn on the thread in between.
            tokio::task::coop::consume_budget().await;
            let object = source.decode(&entry.key, &entry.value, entry.revision);
            if let Some(object) = object.await {
                decoded.insert(entry.key.clone(), object);
            }
        }
        *self.objects.write() = decoded;
        // An empty store is at revision 0, which would read as "not listed yet".
        self.seen.send_replace(page.revision.max(Revision(1)));
        let mut events = store
            .watch(&prefix, WatchStart::After(page.revision))
            .await?;
        while let Some(item) = events.next().await {
            let item = item?;
            *rest = FIRST_REST;
            match item {
                WatchItem::Event(event) => {
                    let object = match event.kind {
                        EventKind::Deleted => None,
                        EventKind::Created | EventKind::Updated => {
                            let value = &event.value;
                            source.decode(&event.key, value, event.revision).await
                        }
                    };
                    self.put(event.key, object);
                    self.seen.send_replace(event.revision);
                }
                WatchItem::Progress(revision) => {
                    self.seen.send_if_modified(|seen| {
                        revision > *seen && {
                            *seen = revision;
                            true
                        }
                    });
                }
            }
        }
        Ok(())
    }

    fn put(&self, key: String, object: Option<Typed>) {
        let mut objects = self.objects.write();
        match object {
            Some(object) => objects.insert(key, object),
            None => objects.remove(&key),
        };
    }
}

impl Source {
    /// Reads one object from the store.
    async fn look_up(&self, key: &str) -> Result<Option<Typed>, ApiError> {
        let entry = self.kind.get(key, "get").await?;
        let Some(entry) = entry else {
            return Ok(None);
        };
        Ok(self.decode(key, &entry.value, entry.revision).await)
    }

    /// An object that cannot be decoded is left out, and said so: one damaged object must not stop the others.
    async fn decode(&self, key: &str, bytes: &[u8], revision: Revision) -> Option<Typed> {
        let object = self
            .kind
            .read_in(key, bytes, revision, self.version)
            .await
            .map_err(|e| e.message);
        match object.and_then(|object| (self.decode)(&object).map_err(|e| e.to_string())) {
            Ok(typed) => Some(typed),
            Err(error) => {
                tracing::warn!(
                    key,
                    error,
                    "a lister leaves out an object that it cannot decode"
                );
                None
            }
        }
    }
}
