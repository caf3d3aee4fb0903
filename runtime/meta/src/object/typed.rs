//! Cache for the typed value of a document: decoded once for all hooks of a write, and kept until a field changes.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize as _;
use serde_json::Value;

use crate::kind::Resource;
use crate::types::ObjectMeta;

/// The typed value of a document, if it was decoded since the document changed.
#[derive(Default)]
pub(super) struct TypedCache(Mutex<Option<CachedValue>>);

struct CachedValue {
    /// A value of a [`Resource`].
    value: Arc<dyn Any + Send + Sync>,
    /// Whether the metadata of the document has changed since; it can be decoded separately.
    is_metadata_outdated: bool,
}

impl TypedCache {
    /// Drops the typed value, because any field may change.
    pub(super) fn clear(&mut self) {
        *self.get_mut() = None;
    }

    /// Marks the metadata as changed.
    pub(super) fn set_metadata_outdated(&mut self) {
        if let Some(typed) = self.get_mut() {
            typed.is_metadata_outdated = true;
        }
    }

    /// Stores a value that is equal to the document.
    pub(super) fn set<K: Resource>(&mut self, value: Arc<K>) {
        *self.get_mut() = Some(CachedValue::new(value));
    }

    /// The document as a typed value: the cached one, with the current metadata of the document, or a new one.
    pub(super) fn get<K: Resource>(&self, document: &Value) -> Result<Arc<K>, serde_json::Error> {
        let mut cached = self.lock();
        let known = cached.take().and_then(CachedValue::downcast::<K>);
        let value = match known {
            Some((value, false)) => value,
            Some((mut value, true)) => {
                *Arc::make_mut(&mut value).metadata_mut() = metadata(document)?;
                value
            }
            None => Arc::new(K::deserialize(document)?),
        };
        *cached = Some(CachedValue::new(Arc::<K>::clone(&value)));
        Ok(value)
    }

    /// Ignores poisoning: a panic while the lock is held leaves no value, or a complete one.
    fn get_mut(&mut self) -> &mut Option<CachedValue> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Option<CachedValue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for TypedCache {
    /// Empty, since most clones are changed immediately.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for TypedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.lock().is_some() {
            "decoded"
        } else {
            "not decoded"
        })
    }
}

impl CachedValue {
    fn new(value: Arc<dyn Any + Send + Sync>) -> Self {
        Self {
            value,
            is_metadata_outdated: false,
        }
    }

    /// The value, if it is of this type, and whether its metadata is outdated.
    fn downcast<K: Resource>(self) -> Option<(Arc<K>, bool)> {
        Some((self.value.downcast().ok()?, self.is_metadata_outdated))
    }
}

/// The metadata of a document, decoded; the default if it is absent.
pub(super) fn metadata(document: &Value) -> Result<ObjectMeta, serde_json::Error> {
    match document.get("metadata") {
        Some(value) => ObjectMeta::deserialize(value),
        None => Ok(ObjectMeta::default()),
    }
}

#[cfg(test)]
mod tests;
