//! The place of a key in a [`SortedMap`](super::SortedMap).

/// The place of a key in a [`SortedMap`](super::SortedMap); see [`SortedMap::entry`](super::SortedMap::entry).
#[derive(Debug)]
pub enum Entry<'a, K, V> {
    /// The key has a value.
    Occupied(OccupiedEntry<'a, K, V>),
    /// It has none.
    Vacant(VacantEntry<'a, K, V>),
}

/// The place of a key that has a value.
#[derive(Debug)]
pub struct OccupiedEntry<'a, K, V> {
    entries: &'a mut Vec<(K, V)>,
    at: usize,
}

/// The place for a key that has no value.
#[derive(Debug)]
pub struct VacantEntry<'a, K, V> {
    entries: &'a mut Vec<(K, V)>,
    at: usize,
    key: K,
}

impl<'a, K, V> Entry<'a, K, V> {
    pub(super) fn new(
        entries: &'a mut Vec<(K, V)>,
        key: K,
        find: impl FnOnce(&[(K, V)], &K) -> Result<usize, usize>,
    ) -> Self {
        match find(entries, &key) {
            Ok(at) => Self::Occupied(OccupiedEntry { entries, at }),
            Err(at) => Self::Vacant(VacantEntry { entries, at, key }),
        }
    }
    /// The value, which is set to this one if there is none.
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }
    /// The value, which is set to the result of a function if there is none.
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> &'a mut V {
        match self {
            Self::Occupied(occupied) => occupied.into_mut(),
            Self::Vacant(vacant) => vacant.insert(value()),
        }
    }
    /// The value, which is set to the default if there is none.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }
    /// Changes the value, if there is one.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut V)) -> Self {
        if let Self::Occupied(occupied) = &mut self {
            change(&mut occupied.entries[occupied.at].1);
        }
        self
    }
}

impl<'a, K, V> OccupiedEntry<'a, K, V> {
    /// The value.
    pub fn get(&self) -> &V {
        &self.entries[self.at].1
    }
    /// The value, which can be changed as long as the map.
    pub fn into_mut(self) -> &'a mut V {
        &mut self.entries[self.at].1
    }
    /// Sets the value, and returns the one before.
    pub fn insert(&mut self, value: V) -> V {
        std::mem::replace(&mut self.entries[self.at].1, value)
    }
    /// Removes the key, and returns its value.
    pub fn remove(self) -> V {
        self.entries.remove(self.at).1
    }
}

impl<'a, K, V> VacantEntry<'a, K, V> {
    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }
    /// Sets the value.
    pub fn insert(self, value: V) -> &'a mut V {
        self.entries.insert(self.at, (self.key, value));
        &mut self.entries[self.at].1
    }
}
