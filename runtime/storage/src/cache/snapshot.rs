//! One state of a prefix: ordered, indexed, immutable once it is shared.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use imbl::ordmap::DiffItem;
use imbl::{OrdMap, OrdSet};

use super::item::Item;
use super::normalize::Normalize;
use crate::keys::prefix_end;
use crate::{Key, Revision};

/// Memory of an entry of the map: two `Arc`s, in nodes that are two thirds full.
pub(super) const MAP_BYTES: usize = 36;

/// Memory of an entry of the index, without the value.
pub(super) const INDEX_BYTES: usize = 60;

/// The number of an index and a value in it.
type Value = (u16, Arc<str>);

/// The objects of a prefix at one revision. A clone is cheap, since clones share their nodes.
pub struct Snapshot<O> {
    revision: Revision,
    items: OrdMap<Arc<str>, Arc<Item<O>>>,
    /// One set for all indexes: a set per value would cost a kilobyte for each object with a unique value.
    index: OrdSet<(Value, Arc<str>)>,
    /// The keys whose stored bytes cannot be decoded; empty unless the store is damaged.
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
    /// The revision of this state.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The object under a key.
    pub fn get(&self, key: &str) -> Option<&Arc<Item<O>>> {
        self.items.get(key)
    }

    /// The objects below a prefix in key order, starting at a key (empty for all of them).
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
        // A start after the prefix selects nothing; a range with a start above its end would panic.
        let crossed = end.as_ref().is_some_and(|end| from >= *end);
        let range = (!crossed).then(|| {
            self.items
                .range::<_, str>((Bound::Included(from.as_str()), upper))
        });
        range.into_iter().flatten().map(|(_, item)| item)
    }

    /// The objects that have a value in an index, in key order.
    pub fn indexed<'a>(
        &'a self,
        index: u16,
        value: &str,
    ) -> impl Iterator<Item = &'a Arc<Item<O>>> + use<'a, O> {
        self.indexed_below(index, value, "", "")
    }

    /// The objects below a prefix that have a value in an index, in key order, starting at a key (empty for all of
    /// them). Objects outside the prefix are not visited.
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

    /// The undecodable entries below a prefix in key order, starting at a key (empty for all of them).
    pub fn damaged<'a>(
        &'a self,
        prefix: &'a str,
        start: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Item<O>>> + use<'a, O> {
        let keys = self.damaged.iter();
        keys.filter(move |key| key.starts_with(prefix) && key.as_ref() >= start)
            .filter_map(|key| self.items.get(key))
    }

    /// What differs in a later state of the same prefix, in key order: the object under each key, as it is here and as it is there. What
    /// both states share is not visited.
    pub fn changes<'a>(
        &'a self,
        later: &'a Self,
    ) -> impl Iterator<Item = (Option<&'a Item<O>>, Option<&'a Item<O>>)> + use<'a, O> {
        let changes = self.items.diff(&later.items);
        changes.map(|change| match change {
            DiffItem::Add(_, new) => (None, Some(&**new)),
            DiffItem::Update {
                old: (_, old),
                new: (_, new),
            } => (Some(&**old), Some(&**new)),
            DiffItem::Remove(_, old) => (Some(&**old), None),
        })
    }

    pub(super) fn set_revision(&mut self, revision: Revision) {
        self.revision = revision;
    }

    /// Inserts an object; returns the one that it replaces.
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

    /// Removes an object and returns it.
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

/// The index values of an object.
fn values<N: Normalize>(normalize: &N, item: &Item<N::Object>) -> Vec<Value> {
    let mut values = Vec::new();
    if let Ok(object) = &item.object {
        normalize.index(object, &mut |index, value| {
            values.push((index, value.into()));
        });
    }
    values
}
