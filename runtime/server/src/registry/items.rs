//! The objects of a list, one after the other while the client reads: a list that nobody reads holds no more than the
//! state it shows.
//!
//! The invariant: whatever could be in the way of an object was tried before the list began, so that a list is answered
//! whole or with an error. A list of which a part cannot be made after all says so by an error, never by ending early.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::vec;

use apiloom_meta::ApiError;
use apiloom_storage::cache::Item;

use super::cached::State;
use super::converted::converted;
use super::document::{CachedObject, Document, Encoded};
use super::kind::{Kind, VersionIndex, namespace_and_name};

/// How many objects are taken from a state at a time: finding the place again costs little beside so many.
const TAKEN_AT_ONCE: usize = 64;

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
    next: VecDeque<Arc<Item<CachedObject>>>,
    /// Where more are.
    rest: Option<Rest>,
}

impl fmt::Debug for Cached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached")
            .field("kind", &self.kind.resource)
            .field("next", &self.next.len())
            .finish_non_exhaustive()
    }
}

/// The objects of a state below a prefix, from a key on.
#[derive(Clone)]
struct Rest {
    state: State,
    prefix: String,
    start: String,
}

impl Items {
    /// Objects that were read from the store.
    pub(super) fn read(documents: Vec<Document>) -> Self {
        Self(Source::Read(documents.into_iter()))
    }

    /// These objects of the cache.
    pub(super) fn chosen(
        kind: &Arc<Kind>,
        version: VersionIndex,
        items: Vec<Arc<Item<CachedObject>>>,
    ) -> Self {
        Self(Source::Cached(Cached {
            kind: Arc::clone(kind),
            version,
            next: items.into(),
            rest: None,
        }))
    }

    /// All objects of a state below a prefix, from a key on.
    pub(super) fn all(
        kind: &Arc<Kind>,
        version: VersionIndex,
        state: State,
        prefix: &str,
        start: &str,
    ) -> Self {
        Self(Source::Cached(Cached {
            kind: Arc::clone(kind),
            version,
            next: VecDeque::new(),
            rest: Some(Rest {
                state,
                prefix: prefix.to_owned(),
                start: start.to_owned(),
            }),
        }))
    }

    /// As many objects as there may be.
    pub fn at_most(&self) -> usize {
        match &self.0 {
            Source::Read(documents) => documents.len(),
            Source::Cached(cached) => {
                let rest = cached.rest.as_ref();
                cached.next.len() + rest.map_or(0, |rest| rest.state.len())
            }
        }
    }

    /// The namespaces, of a kind that has them, and the names.
    pub(super) fn names(&self) -> Vec<(String, String)> {
        match &self.0 {
            Source::Read(documents) => {
                let objects = documents.as_slice().iter().filter_map(|d| d.object().ok());
                objects
                    .map(|object| (object.namespace().to_owned(), object.name().to_owned()))
                    .collect()
            }
            Source::Cached(cached) => {
                let mut cached = cached.clone();
                let items = std::iter::from_fn(|| cached.take());
                items
                    .map(|item| {
                        let (namespace, name) = namespace_and_name(&item.key);
                        (namespace.to_owned(), name.to_owned())
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
                let item = cached.take()?;
                Some(cached.document(&item))
            }
        }
    }
}

impl Cached {
    fn take(&mut self) -> Option<Arc<Item<CachedObject>>> {
        if self.next.is_empty()
            && let Some(rest) = &mut self.rest
        {
            let items = rest.state.range(&rest.prefix, &rest.start);
            self.next.extend(items.take(TAKEN_AT_ONCE).cloned());
            match self.next.back() {
                Some(last) if self.next.len() == TAKEN_AT_ONCE => {
                    // NUL is the smallest byte, so this is the first key behind the last.
                    rest.start.clear();
                    rest.start.push_str(&last.key);
                    rest.start.push('\0');
                }
                // Nothing keeps the state alive that is not sent any more.
                _ => self.rest = None,
            }
        }
        self.next.pop_front()
    }

    fn document(&self, item: &Arc<Item<CachedObject>>) -> Result<Document, ApiError> {
        match self.version == self.kind.storage_version {
            true => Encoded::new(item, None).map(Document::Encoded),
            false => converted(&self.kind, item, self.version).map(Document::Converted),
        }
    }
}
