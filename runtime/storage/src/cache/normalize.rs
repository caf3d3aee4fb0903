//! What a cache has to know of its objects.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::item::Item;
use crate::Revision;

/// Number of indexes that are kept with the objects, and size of every further group, whose values are computed for
/// changes only while a watcher waits for one.
pub const INDEX_GROUP: u16 = 256;

/// Converts stored bytes to the form in which they are served. Called once for each object when it enters the cache.
pub trait Normalize: Send + Sync + 'static {
    /// The form in which the cache keeps an object.
    type Object: Send + Sync + fmt::Debug + 'static;

    /// Converts stored bytes.
    ///
    /// # Errors
    /// The reason why the bytes cannot be decoded. It is kept in place of the object, so that one damaged object does
    /// not hide others, and readers of its key receive the error.
    fn normalize(
        &self,
        key: &str,
        stored: &Bytes,
        revision: Revision,
    ) -> Result<Self::Object, String>;

    /// The size of the object as sent to a client.
    fn wire_bytes(&self, object: &Self::Object) -> usize;

    /// The heap memory of the object in bytes, without its own size, for the limits of history and for metrics.
    fn heap_bytes(&self, object: &Self::Object) -> usize;

    /// Reports the object's index values, each with the number of its index, which is below [`INDEX_GROUP`]. Each
    /// number is reported at most once.
    fn index(&self, object: &Self::Object, found: &mut dyn FnMut(u16, &str));

    /// Computes the values of an index group that is not kept: the indexes from `group` times [`INDEX_GROUP`] on.
    /// Returns whether that was possible; if not, all watchers of the group are woken for the change.
    fn derive_index(
        &self,
        _item: &Arc<Item<Self::Object>>,
        _group: u16,
        _found: &mut dyn FnMut(u16, &str),
    ) -> bool {
        false
    }
}
