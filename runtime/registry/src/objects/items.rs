//! The objects of a list, in a stream that the client's reads pull: an unread list holds only the snapshot that it
//! shows.
//!
//! Invariant: every step that can fail for an object was tried before the list began, so that the response is complete
//! or an error. If a conversion still fails, the iterator yields an error; it never ends early.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::vec;

use apiloom_meta::ApiError;
use apiloom_storage::cache::Item;

use super::cached_object::{CachedObject, object};
use super::converted::converted;
use super::document::{Document, EncodedObject};
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
    Cached(CachedItems),
}

impl Default for Source {
    fn default() -> Self {
        Self::Read(Vec::new().into_iter())
    }
}

/// Objects of the cache, with the version of the response.
#[derive(Clone)]
struct CachedItems {
    kind: Arc<Kind>,
    version: VersionIndex,
    reader: Reader,
}

impl fmt::Debug for CachedItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedItems")
            .field("kind", &self.kind.resource)
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}

impl Items {
    /// A list of objects that were read from the store.
    pub(crate) fn read(documents: Vec<Document>) -> Self {
        Self(Source::Read(documents.into_iter()))
    }

    /// A list of selected objects of the cache; `replaced` is the cache's count of replaced bytes when they were
    /// selected.
    pub(crate) fn selected(
        of: (&Arc<Kind>, VersionIndex),
        items: Vec<Arc<Item<CachedObject>>>,
        replaced: u64,
    ) -> Self {
        Self::cached(of, Objects::Selected(items.into()), replaced)
    }

    /// A list of objects that are read while it is sent; `replaced` as for [`Items::selected`].
    pub(crate) fn cached(
        (kind, version): (&Arc<Kind>, VersionIndex),
        objects: Objects,
        replaced: u64,
    ) -> Self {
        Self(Source::Cached(CachedItems {
            kind: Arc::clone(kind),
            version,
            reader: kind.readers.read(objects, replaced),
        }))
    }

    /// The objects, which stay in the list.
    pub fn iter(
        &self,
    ) -> Box<dyn Iterator<Item = Result<Cow<'_, Document>, ApiError>> + Send + '_> {
        match &self.0 {
            Source::Read(documents) => Box::new(
                documents
                    .as_slice()
                    .iter()
                    .map(|document| Ok(Cow::Borrowed(document))),
            ),
            Source::Cached(cached) => {
                let mut reader = cached.reader.clone();
                let items = std::iter::from_fn(move || reader.take());
                Box::new(items.map(|item| cached.document(&item?).map(Cow::Owned)))
            }
        }
    }

    /// Namespaces and names of the objects; an empty namespace for a kind without namespaces.
    ///
    /// # Errors
    /// As for the items themselves.
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

    // The crate of the wire asks for each object, as it does what else is marked so.
    #[inline]
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

impl CachedItems {
    fn document(&self, item: &Arc<Item<CachedObject>>) -> Result<Document, ApiError> {
        if object(item)?.version_index() == self.version {
            EncodedObject::new(item, None).map(Document::Encoded)
        } else {
            converted(&self.kind.versions, item, self.version).map(Document::Converted)
        }
    }
}
