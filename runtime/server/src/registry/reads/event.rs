//! Events of a watch.

use std::sync::Arc;

use apiloom_storage::cache::Change;

use crate::registry::objects::cached_object::CachedObject;
use crate::registry::objects::document::Document;

/// Type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the API's own")]
pub enum WatchEventKind {
    Added,
    Modified,
    Deleted,
    Bookmark,
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    /// Type of the event.
    pub kind: WatchEventKind,
    /// The object; for a bookmark only metadata.resourceVersion, and the annotation
    /// `k8s.io/initial-events-end` on the one that ends the initial events.
    pub object: Document,
    /// The change of the watch cache from which the event was made.
    pub(in crate::registry) change: Option<Arc<Change<CachedObject>>>,
}
