//! The follower of a kind, in process: all its objects that can be read, then each change, for as long as it is asked.
//!
//! It is a watch that begins with a list. When that ends (an expired revision, a reader that was too slow, a store or a conversion
//! that fails, after a day), it begins again a little later, and what the new list lacks was deleted meanwhile. Who follows
//! decides what it keeps, and waits for other things beside [`Follower::next`], whose future may be dropped.
//!
//! # Why it is not an informer of the client crate
//!
//! An informer is a list and a watch with a store behind it, as `ListWatch` shapes them. What follows here needs the watch without
//! that store: the garbage collector follows every kind and keeps its edges alone, the definitions keep their names without their
//! schemas, and all objects are in the watch caches of this process already. And it needs to know of the watch what the items of
//! `ListWatch` do not say: up to which revision everything was shown while nothing changes, which objects are left out because
//! they cannot be read (no event says so), whether more is ready, and whether a conversion runs that should not be begun again.
//! An informer also decides for itself when it lists again (after 5 to 10 minutes, with a wait of up to 30 s after failures).

use std::collections::HashSet;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use apiloom_meta::ApiError;
use apiloom_registry::{
    Document, Endpoint, ListOptions, RequestContext, StoredEvents, StoredReads, WatchEvent,
    WatchEventKind,
};
use apiloom_storage::Revision;
use tokio::time::{Instant, sleep_until};

/// Lifetime of a watch: it begins with a list of all objects, which is not repeated without need.
const LIFETIME_SECONDS: u64 = 24 * 3600;

/// Time between two watches, unless it is set. Also after one that was too slow: the next one lists all objects.
const RETRY: Duration = Duration::from_secs(1);

/// Reads an object: what identifies it, and what is followed of it. `None` for one that is passed over.
pub type Read<K, T> = fn(&Endpoint, &Document) -> Option<(K, T)>;

/// What a follower tells, in order.
#[derive(Debug, PartialEq)]
pub enum Update<K: Eq + Hash, T> {
    /// All objects are going to be shown, perhaps by a store that went back to an earlier state.
    Begun,
    /// An object is there: one of the list, or a new one.
    Added(T),
    /// An object has changed.
    Modified(T),
    /// An object was deleted.
    Deleted(K),
    /// All objects were shown, and these are all.
    Complete(HashSet<K>),
    /// The watch goes on, without an object.
    Alive,
    /// The watch has ended, perhaps by an error. It begins again.
    Ended(Option<ApiError>),
}

/// Where a follower is.
enum Stage {
    /// The next watch begins at this time.
    Waiting(Instant),
    /// What is needed only to begin is large, and there is a follower for each kind.
    Opening(Pin<Box<dyn Future<Output = Result<StoredEvents, ApiError>> + Send>>),
    Open(Box<StoredEvents>),
}

/// Follows all objects of a kind.
pub struct Follower<K, T> {
    endpoint: Arc<Endpoint>,
    read: Read<K, T>,
    retry: Duration,
    stage: Stage,
    /// The objects that were listed; `None` once these are all.
    listed: Option<HashSet<K>>,
}

impl<K: Eq + Hash, T> Follower<K, T> {
    /// One that begins at once.
    pub fn new(endpoint: Arc<Endpoint>, read: Read<K, T>) -> Self {
        Self {
            endpoint,
            read,
            retry: RETRY,
            stage: Stage::Waiting(Instant::now()),
            listed: None,
        }
    }

    /// That of the kind.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Sets the time between two watches.
    pub fn retry_after(self, retry: Duration) -> Self {
        Self { retry, ..self }
    }

    /// Waits for the next update. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Update<K, T> {
        loop {
            match &mut self.stage {
                Stage::Waiting(at) => {
                    // A timer takes up to a millisecond, for which the start of a server would wait twice.
                    if *at > Instant::now() {
                        sleep_until(*at).await;
                    }
                    self.stage = Stage::Opening(Box::pin(open(Arc::clone(&self.endpoint))));
                }
                Stage::Opening(opening) => match opening.await {
                    Ok(events) => {
                        self.stage = Stage::Open(Box::new(events));
                        self.listed = Some(HashSet::new());
                        return Update::Begun;
                    }
                    Err(error) => return self.end(Some(error)),
                },
                Stage::Open(events) => match events.next().await {
                    Some(Ok(event)) => return self.update(&event),
                    Some(Err(error)) => return self.end(Some(error)),
                    None => return self.end(None),
                },
            }
        }
    }

    fn update(&mut self, event: &WatchEvent) -> Update<K, T> {
        if event.kind == WatchEventKind::Bookmark {
            return self.listed.take().map_or(Update::Alive, Update::Complete);
        }
        let Some((key, object)) = (self.read)(&self.endpoint, &event.object) else {
            return Update::Alive;
        };
        if event.kind == WatchEventKind::Deleted {
            return Update::Deleted(key);
        }
        if let Some(listed) = &mut self.listed {
            listed.insert(key);
        }
        if event.kind == WatchEventKind::Added {
            Update::Added(object)
        } else {
            Update::Modified(object)
        }
    }

    fn end(&mut self, error: Option<ApiError>) -> Update<K, T> {
        self.begin_again();
        Update::Ended(error)
    }

    /// Ends the watch, if there is one; the next one shows all objects again.
    pub fn begin_again(&mut self) {
        self.stage = Stage::Waiting(Instant::now() + self.retry);
        self.listed = None;
    }

    fn events(&self) -> Option<&StoredEvents> {
        match &self.stage {
            Stage::Open(events) => Some(events),
            Stage::Waiting(_) | Stage::Opening(_) => None,
        }
    }

    /// Whether all objects were shown, and their changes are followed.
    pub fn is_complete(&self) -> bool {
        self.listed.is_none() && self.events().is_some()
    }

    /// Why an object was left out; `None` if none is.
    pub fn unreadable(&self) -> Option<&str> {
        self.events()?.unreadable()
    }

    /// The names of objects that were left out.
    pub fn unreadable_names(&self) -> impl Iterator<Item = &str> {
        let events = self.events().into_iter();
        events.flat_map(StoredEvents::unreadable_names)
    }

    /// Whether an update may be there without waiting.
    pub fn is_ready(&self) -> bool {
        self.events().is_some_and(StoredEvents::is_ready)
    }

    /// The revision up to which all changes were shown, as far as it is known without a request to the store.
    pub fn delivered(&mut self) -> Option<Revision> {
        match &mut self.stage {
            Stage::Open(events) => events.delivered(),
            Stage::Waiting(_) | Stage::Opening(_) => None,
        }
    }

    /// Whether [`Follower::next`] only waits for a change of the present watch. Otherwise its future should not be dropped without
    /// need: a conversion would begin again, and one that takes long would never end.
    pub fn idle(&self) -> Arc<AtomicBool> {
        self.events().map(StoredEvents::idle).unwrap_or_default()
    }
}

/// The reads of a stored kind.
///
/// # Errors
/// MethodNotAllowed for a kind without a store, of which controllers read nothing.
pub(super) fn stored(endpoint: &Endpoint) -> Result<&Arc<StoredReads>, ApiError> {
    let resource = endpoint.resource().group_resource();
    let stored = endpoint.reads().stored();
    stored.ok_or_else(|| ApiError::method_not_supported(resource, "watch"))
}

/// Begins to watch all objects of a kind that can be read. A bookmark follows those that are there.
async fn open(endpoint: Arc<Endpoint>) -> Result<StoredEvents, ApiError> {
    let options = ListOptions {
        send_initial_events: Some(true),
        allow_watch_bookmarks: true,
        timeout_seconds: Some(LIFETIME_SECONDS),
        ..ListOptions::default()
    };
    let ctx = RequestContext::default();
    let events = stored(&endpoint)?.watch(&ctx, None, &options).await?;
    Ok(events.without_unreadable())
}

#[cfg(test)]
mod tests;
