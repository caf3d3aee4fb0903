//! One state of a prefix: ordered, indexed, immutable once it is shared.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::Normalize;
use crate::keys::prefix_end;
use crate::{Key, Revision};

/// One object of the cache.
#[derive(Debug)]
pub struct Item<O> {
    /// Its key in the store.
    pub key: Arc<str>,
    /// The revision that wrote it.
    pub revision: Revision,
    /// What is served, or why the stored bytes are no object.
    pub object: Result<O, String>,
}

/// What a place in the map costs: two counted pointers, in nodes that are two thirds full.
pub(super) const MAP_BYTES: usize = 36;

/// What a place in the index costs beside the value.
pub(super) const INDEX_BYTES: usize = 60;

/// The number of an index and a value in it.
type Value = (u16, Arc<str>);

/// The objects of a prefix at one revision. A copy costs nothing: copies share what is the same in them.
pub struct Snapshot<O> {
    revision: Revision,
    items: OrdMap<Arc<str>, Arc<Item<O>>>,
    /// One set for all indexes: a set for each value would cost a kilobyte for each object that is alone with its value.
    index: OrdSet<(Value, Arc<str>)>,
    /// The keys under which the store holds what is no object: none, as long as nothing is damaged.
    damaged: OrdSet<Arc<str>>,
}

impl<O> Clone for Snapshot<O> {
    fn clone(&self) -> Self {
        Self {
            revision: self.revision,
            items: self.items.clone(),
            index: self.index.clone(),
            damaged: self.damaged.clone(),
        }
    }
}

impl<O> Default for Snapshot<O> {
    fn default() -> Self {
        Self {
            revision: Revision(0),
            items: OrdMap::new(),
            index: OrdSet::new(),
            damaged: OrdSet::new(),
        }
    }
}

impl<O> fmt::Debug for Snapshot<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("revision", &self.revision)
            .field("objects", &self.items.len())
            .finish()
    }
}

impl<O> Snapshot<O> {
    /// The revision whose state this is.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The object under a key.
    pub fn get(&self, key: &str) -> Option<&Arc<Item<O>>> {
        self.items.get(key)
    }

    /// The objects below a prefix, in ascending order of their keys, from a key on (empty for all of them).
    pub fn range<'a>(
        &'a self,
        prefix: &str,
        start: &str,
    ) -> impl Iterator<Item = &'a Arc<Item<O>>> + use<'a, O> {
        let from = crate::keys::range_start(prefix, start).to_owned();
        let end: Option<Key> = prefix_end(prefix);
        let upper = match &end {
            Some(end) => Bound::Excluded(end.as_str()),
            None => Bound::Unbounded,
        };
        // A start behind the prefix selects nothing; a range whose ends cross would be a mistake of the caller's.
        let crossed = end.as_ref().is_some_and(|end| from >= *end);
        let range = (!crossed).then(|| {
            self.items
                .range::<_, str>((Bound::Included(from.as_str()), upper))
        });
        range.into_iter().flatten().map(|(_, item)| item)
    }

    /// The objects that an index finds under a value, in ascending order of their keys.
    pub fn indexed<'a>(
        &'a self,
        index: u16,
        value: &str,
    ) -> impl Iterator<Item = &'a Arc<Item<O>>> + use<'a, O> {
        self.indexed_below(index, value, "", "")
    }

    /// The objects below a prefix that an index finds under a value, in ascending order of their keys, from a key on (empty
    /// for all of them). Others of that value are not looked at.
    pub fn indexed_below<'a>(
        &'a self,
        index: u16,
        value: &str,
        prefix: &'a str,
        start: &str,
    ) -> impl Iterator<Item = &'a Arc<Item<O>>> + use<'a, O> {
        let value: Value = (index, value.into());
        let first = (
            value.clone(),
            crate::keys::range_start(prefix, start).into(),
        );
        self.index
            .range(first..)
            .take_while(move |(of, key)| *of == value && key.starts_with(prefix))
            .filter_map(|(_, key)| self.items.get(key))
    }

    /// What is no object below a prefix, in ascending order of the keys, from a key on (empty for all of it).
    pub fn damaged<'a>(
        &'a self,
        prefix: &'a str,
        start: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Item<O>>> + use<'a, O> {
        let keys = self.damaged.iter();
        keys.filter(move |key| key.starts_with(prefix) && key.as_ref() >= start)
            .filter_map(|key| self.items.get(key))
    }

    pub(super) fn set_revision(&mut self, revision: Revision) {
        self.revision = revision;
    }

    /// Puts an object in; gives the one that was there.
    pub(super) fn put<N>(&mut self, normalize: &N, item: Arc<Item<O>>) -> Option<Arc<Item<O>>>
    where
        N: Normalize<Object = O>,
    {
        if item.object.is_err() {
            self.damaged.insert(Arc::clone(&item.key));
        } else if !self.damaged.is_empty() {
            self.damaged.remove(&item.key);
        }
        let old = self.items.insert(Arc::clone(&item.key), Arc::clone(&item));
        let before = old
            .as_deref()
            .map(|old| values(normalize, old))
            .unwrap_or_default();
        let after = values(normalize, &item);
        if before != after {
            self.unindex(before, &item.key);
            for value in after {
                self.index.insert((value, Arc::clone(&item.key)));
            }
        }
        old
    }

    /// Takes an object out, and gives it.
    pub(super) fn remove<N>(&mut self, normalize: &N, key: &str) -> Option<Arc<Item<O>>>
    where
        N: Normalize<Object = O>,
    {
        let old = self.items.remove(key)?;
        if old.object.is_err() {
            self.damaged.remove(key);
        }
        self.unindex(values(normalize, &old), &old.key);
        Some(old)
    }

    fn unindex(&mut self, values: Vec<Value>, key: &Arc<str>) {
        for value in values {
            self.index.remove(&(value, Arc::clone(key)));
        }
    }
}

/// The values by which an object is found.
fn values<N: Normalize>(normalize: &N, item: &Item<N::Object>) -> Vec<Value> {
    let mut values = Vec::new();
    if let Ok(object) = &item.object {
        normalize.index(object, &mut |index, value| {
            values.push((index, value.into()));
        });
    }
    values
}
