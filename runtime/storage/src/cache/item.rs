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
