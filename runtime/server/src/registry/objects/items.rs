//! The objects of a list, one after the other while the client reads: a list that is not read holds no more than the
//! state it shows.
//!
//! The invariant: every step that can fail for an object was tried before the list began, so that a list is answered
//! whole or with an error. A list of which a part cannot be made after all says so by an error, never by ending early.

use std::fmt;
use std::sync::Arc;
use std::vec;

use apiloom_meta::ApiError;
use apiloom_storage::cache::Item;

use super::cached_object::{CachedObject, State};
use super::converted::converted;
use super::document::{Document, Encoded};
use super::key::namespace_and_name;
use super::kind::Kind;
use super::kind_version::VersionIndex;
use super::readers::{Objects, Reader, TooSlow};

/// The objects of a list, in key order.
#[derive(Clone, Debug, Default)]
pub struct Items(Source);

#[derive(Clone, Debug)]
enum Source {
    Read(vec::IntoIter<Document>),
    Cached(Cached),
}

impl Default for Source {
    fn default() -> Self {
        Self::Read(Vec::new().into_iter())
    }
}

/// Objects of the cache, to be sent in a version.
#[derive(Clone)]
struct Cached {
    kind: Arc<Kind>,
    version: VersionIndex,
    reader: Reader,
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached")
            .field("kind", &self.kind.resource)
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}

impl Items {
    /// Objects that were read from the store.
    pub(crate) fn read(documents: Vec<Document>) -> Self {
        Self(Source::Read(documents.into_iter()))
    }

    /// These objects of the cache, in a version; the cache had replaced so many bytes before.
    pub(crate) fn chosen(
        of: (&Arc<Kind>, VersionIndex),
        items: Vec<Arc<Item<CachedObject>>>,
        replaced: u64,
    ) -> Self {
        Self::cached(of, Objects::Chosen(items.into()), replaced)
    }

    /// All objects of a state below a prefix, from a key on; the cache had replaced so many bytes before.
    pub(crate) fn all(
        of: (&Arc<Kind>, VersionIndex),
        state: State,
        (prefix, start): (&str, &str),
        replaced: u64,
    ) -> Self {
        let objects = Objects::Below {
            state,
            prefix: prefix.to_owned(),
            start: start.to_owned(),
        };
        Self::cached(of, objects, replaced)
    }

    fn cached(
        (kind, version): (&Arc<Kind>, VersionIndex),
        objects: Objects,
        replaced: u64,
    ) -> Self {
        Self(Source::Cached(Cached {
            kind: Arc::clone(kind),
            version,
            reader: kind.readers.read(objects, replaced),
        }))
    }

    /// The namespaces, of a kind that has them, and the names.
    ///
    /// # Errors
    /// As the items themselves.
    pub(crate) fn names(&self) -> Result<Vec<(String, String)>, ApiError> {
        match &self.0 {
            Source::Read(documents) => {
                let objects = documents.as_slice().iter().map(Document::object);
                objects
                    .map(|object| {
                        let object = object?;
                        Ok((object.namespace().to_owned(), object.name().to_owned()))
                    })
                    .collect()
            }
            Source::Cached(cached) => {
                let mut reader = cached.reader.clone();
                let items = std::iter::from_fn(|| reader.take());
                items
                    .map(|item| {
                        let item = item?;
                        let (namespace, name) = namespace_and_name(&item.key);
                        Ok((namespace.to_owned(), name.to_owned()))
                    })
                    .collect()
            }
        }
    }
}

impl Iterator for Items {
    type Item = Result<Document, ApiError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Source::Read(documents) => documents.next().map(Ok),
            Source::Cached(cached) => {
                let item = cached.reader.take()?;
                Some(
                    item.map_err(ApiError::from)
                        .and_then(|item| cached.document(&item)),
                )
            }
        }
    }
}

impl From<TooSlow> for ApiError {
    fn from(error: TooSlow) -> Self {
        ApiError::internal_text(error.to_string())
    }
}

impl Cached {
    fn document(&self, item: &Arc<Item<CachedObject>>) -> Result<Document, ApiError> {
        match self.version == self.kind.storage_version {
            true => Encoded::new(item, None).map(Document::Encoded),
            false => converted(&self.kind, item, self.version).map(Document::Converted),
        }
    }
}
