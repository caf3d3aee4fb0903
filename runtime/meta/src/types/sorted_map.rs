//! `SortedMap`: a map in one sorted vector, for the small maps of cached objects.

mod entry;
mod traits;

use std::borrow::Borrow;
use std::slice;

pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use traits::IntoIter;

/// A map whose entries are in one vector, in the order of their keys. It has the methods of
/// [`BTreeMap`](std::collections::BTreeMap), looks the same in JSON and in schemas, and needs less memory: a `BTreeMap` of one
/// `String` to another takes 544 bytes for its first entry already, this one 48 bytes for each. The labels and annotations of
/// [`ObjectMeta`](crate::ObjectMeta) are such maps; use it for fields of kinds of which caches have many objects.
///
/// A lookup is a binary search. To insert or remove an entry moves those behind it, so a map of thousands of entries that
/// changes in any order is better a `BTreeMap`. Making one of an iterator sorts once.
///
/// ```
/// use apiloom_meta::SortedMap;
///
/// let mut labels = SortedMap::from([("tier".to_owned(), "web".to_owned())]);
/// labels.insert("app".to_owned(), "shop".to_owned());
/// assert_eq!(labels.get("app").map(String::as_str), Some("shop"));
/// assert_eq!(labels.keys().collect::<Vec<_>>(), ["app", "tier"]);
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SortedMap<K, V> {
    /// Sorted by keys, each of which is there once.
    entries: Vec<(K, V)>,
}

/// The entries of a [`SortedMap`], in the order of the keys.
#[derive(Clone, Debug)]
pub struct Iter<'a, K, V>(slice::Iter<'a, (K, V)>);

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, value)| (key, value))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(key, value)| (key, value))
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

impl<K, V> SortedMap<K, V> {
    /// An empty map, which allocates nothing.
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
    /// The entries, in the order of the keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter(self.entries.iter())
    }
    /// The entries with values that can be changed, in the order of the keys.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&K, &mut V)> {
        self.entries.iter_mut().map(|(key, value)| (&*key, value))
    }
    /// The keys, in their order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator {
        self.entries.iter().map(|(key, _)| key)
    }
    /// The values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator {
        self.entries.iter().map(|(_, value)| value)
    }
    /// The values, which can be changed, in the order of their keys.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.entries.iter_mut().map(|(_, value)| value)
    }
    /// The keys, without the values.
    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator {
        self.entries.into_iter().map(|(key, _)| key)
    }
    /// The values, without the keys.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.entries.into_iter().map(|(_, value)| value)
    }
    /// Keeps the entries for which the function returns true.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| is_kept(key, value));
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// The place of a key, or the one at which it would be inserted.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        // Documents have sorted keys as a rule, so what is inserted is mostly the last one.
        if self
            .entries
            .last()
            .is_none_or(|(last, _)| last.borrow() < key)
        {
            return Err(self.entries.len());
        }
        self.entries
            .binary_search_by(|(present, _)| present.borrow().cmp(key))
    }
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        Some(&self.entries[at].1)
    }
    /// The value of a key, which can be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        Some(&mut self.entries[at].1)
    }
    /// Whether there is a key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }
    /// Sets the value of a key, and returns the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.entries.insert(at, (key, value));
                None
            }
        }
    }
    /// Removes a key, and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = self.find(key).ok()?;
        Some(self.entries.remove(at).1)
    }
    /// The place of a key, to look at its value and to set it.
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        Entry::new(&mut self.entries, key, |entries, key| {
            entries.binary_search_by(|(present, _)| present.cmp(key))
        })
    }

    /// The map of entries in any order; of those with one key the last one counts. It has no room for more.
    fn of_entries(mut entries: Vec<(K, V)>) -> Self {
        let is_sorted = entries.is_sorted_by(|(a, _), (b, _)| a < b);
        if !is_sorted {
            // Entries with one key stay in their order, with the last one in front after the reversal.
            entries.reverse();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            entries.dedup_by(|(a, _), (b, _)| a == b);
        }
        entries.shrink_to_fit();
        Self { entries }
    }
}

#[cfg(test)]
mod tests;
