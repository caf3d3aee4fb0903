//! Events of a watch.

use std::sync::Arc;

use apiloom_meta::Object;
use apiloom_storage::cache::Change;
use serde_json::{Map, Value};

use crate::objects::cached_object::CachedObject;
use crate::objects::document::Document;
use crate::objects::versioned_resource::VersionedResource;

/// Annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

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
    pub(crate) change: Option<Arc<Change<CachedObject>>>,
}

/// The event for a client that was sent `old` and is now sent `new`.
pub(super) fn transition(old: Option<Document>, new: Option<Document>) -> Option<WatchEvent> {
    match (old, new) {
        (None, Some(new)) => Some(event(WatchEventKind::Added, new)),
        (Some(_), Some(new)) => Some(event(WatchEventKind::Modified, new)),
        (Some(old), None) => Some(event(WatchEventKind::Deleted, old)),
        (None, None) => None,
    }
}

/// An event that is not of the watch cache.
pub(super) fn event(kind: WatchEventKind, object: Document) -> WatchEvent {
    WatchEvent {
        kind,
        object,
        change: None,
    }
}

/// A bookmark: clients can resume from its resourceVersion.
pub(super) fn bookmark(
    resource: &VersionedResource,
    resource_version: &str,
    ends_initial_events: bool,
) -> WatchEvent {
    let version = resource.version();
    let mut object = Object::default();
    object.set_type(&version.api_version, &version.def.kind);
    object.set_meta_str("resourceVersion", resource_version);
    if ends_initial_events {
        let annotations = Map::from_iter([(INITIAL_EVENTS_END.to_owned(), Value::from("true"))]);
        object
            .meta_mut()
            .insert("annotations".to_owned(), Value::Object(annotations));
    }
    event(WatchEventKind::Bookmark, object.into())
}
