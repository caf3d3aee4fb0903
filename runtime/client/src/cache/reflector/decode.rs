//! Objects on their way into the store: the transformation of the user, and objects that cannot be cached.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::cache::hub::{CacheError, Hub};
use crate::cache::object::{CacheObject, ObjectKey};
use crate::cache::source::Undecodable;

/// Most bad objects that are remembered between two lists.
const MOST_BAD: usize = 10_000;

/// Changes an object before it is cached, for instance to drop fields that are not needed. An error keeps the object out
/// of the cache.
pub(in crate::cache) type Transform<T> = Arc<dyn Fn(&mut T) -> Result<(), String> + Send + Sync>;

/// Transforms objects, and remembers those that cannot be cached.
pub(super) struct Decoder<T> {
    hub: Arc<Hub<T>>,
    transform: Option<Transform<T>>,
    /// The objects that cannot be cached, with the state that was reported.
    bad: HashMap<ObjectKey, Option<String>>,
    /// The same of the list that is being read; they replace the others when it is complete.
    bad_in_list: HashMap<ObjectKey, Option<String>>,
}

impl<T: CacheObject> Decoder<T> {
    pub(super) fn new(hub: Arc<Hub<T>>, transform: Option<Transform<T>>) -> Self {
        Self {
            hub,
            transform,
            bad: HashMap::new(),
            bad_in_list: HashMap::new(),
        }
    }

    /// The object as it is cached.
    pub(super) fn transform(&self, mut object: T) -> Result<T, Undecodable> {
        if object.name().is_empty() {
            return Err(Undecodable {
                key: None,
                resource_version: None,
                error: "it has no metadata.name".to_owned(),
            });
        }
        let Some(transform) = &self.transform else {
            return Ok(object);
        };
        let key = ObjectKey::of(&object);
        let (uid, version) = (
            object.uid().to_owned(),
            object.resource_version().to_owned(),
        );
        let result = catch_unwind(AssertUnwindSafe(|| transform(&mut object)));
        let error = match result {
            Ok(Ok(())) => {
                let is_same = ObjectKey::of(&object) == key
                    && object.uid() == uid
                    && object.resource_version() == version;
                if is_same {
                    return Ok(object);
                }
                "the transformation changed its name, namespace, uid or resourceVersion".to_owned()
            }
            Ok(Err(error)) => format!("the transformation failed: {error}"),
            Err(_) => "the transformation panicked".to_owned(),
        };
        Err(Undecodable {
            key: Some(key),
            resource_version: Some(version).filter(|version| !version.is_empty()),
            error,
        })
    }

    /// Begins a list.
    pub(super) fn begin_list(&mut self) {
        self.bad_in_list.clear();
    }
    /// Reports a bad object of a list.
    pub(super) fn reject_in_list(&mut self, object: Undecodable) {
        let key = object.key.clone().unwrap_or_default();
        let version = object.resource_version.clone();
        if self.bad.get(&key) != Some(&version) && self.bad_in_list.get(&key) != Some(&version) {
            self.hub.report(&CacheError::Object(object));
        }
        self.bad_in_list.insert(key, version);
    }
    /// Ends a list: the bad objects are those of the list.
    pub(super) fn finish_list(&mut self) {
        self.bad = std::mem::take(&mut self.bad_in_list);
    }

    /// Reports a bad object of a watch.
    pub(super) fn reject(&mut self, object: Undecodable) {
        let key = object.key.clone().unwrap_or_default();
        let version = object.resource_version.clone();
        if self.bad.get(&key) != Some(&version) {
            self.hub.report(&CacheError::Object(object));
        }
        // Nothing says when such an object is deleted: after a while some are reported once more.
        if self.bad.len() >= MOST_BAD {
            self.bad.clear();
        }
        self.bad.insert(key, version);
    }
    /// An object is good, or gone.
    pub(super) fn accept(&mut self, object: &T) {
        if !self.bad.is_empty() {
            self.bad.remove(&ObjectKey::of(object));
        }
    }
}
