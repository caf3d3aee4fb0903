//! An object of the cache.

use std::sync::Arc;

use crate::Revision;

/// One object of the cache.
#[derive(Debug)]
pub struct Item<O> {
    /// The object's key in the store.
    pub key: Arc<str>,
    /// The revision of its last write.
    pub revision: Revision,
    /// The object to serve, or why the stored bytes cannot be decoded.
    pub object: Result<O, String>,
}

/// An object is equal to itself alone: its key and its revision are not enough, since a store that was restored gives them again.
impl<O> PartialEq for Item<O> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
