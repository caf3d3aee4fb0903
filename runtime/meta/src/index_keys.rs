//! The keys that a field has in an index of local copies.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use crate::types::SortedMap;

/// A value by which an index finds objects: a text, an integer, a `bool` or an enum has itself as the only key; an absent value
/// has none, a list has its elements and a map its keys.
///
/// `#[apiloom::api]` implements it for enums without values, if they are `Eq` and `Hash` too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of an index",
    label = "the field of an index",
    note = "keys are texts, integers, `bool` and enums of `#[apiloom::api]` with `#[derive(Eq, Hash)]` below it, or lists and maps of them; for another value implement `Index`"
)]
pub trait IndexKeys {
    /// The type of the keys.
    type Key;
    /// Emits the keys.
    fn each_key(&self, emit: &mut dyn FnMut(Self::Key));
}

/// What an enum needs to be a key, with a lifetime: a bound on it is not checked before it is used.
pub trait IndexKeyOf<'a>: Clone + Eq + std::hash::Hash {}

impl<T: Clone + Eq + std::hash::Hash> IndexKeyOf<'_> for T {}

macro_rules! own_keys {
    ($($type:ty),+) => { $(
        impl IndexKeys for $type {
            type Key = $type;
            fn each_key(&self, emit: &mut dyn FnMut($type)) {
                emit(self.clone());
            }
        }
    )+ };
}

own_keys!(
    String, bool, char, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize
);

macro_rules! containers {
    ($($container:ident),+) => { $(
        impl<T: IndexKeys> IndexKeys for $container<T> {
            type Key = T::Key;
            fn each_key(&self, emit: &mut dyn FnMut(T::Key)) {
                self.iter().for_each(|value| value.each_key(emit));
            }
        }
    )+ };
}

containers!(Option, Vec, VecDeque, BTreeSet, HashSet);

macro_rules! maps {
    ($($map:ident),+) => { $(
        impl<K: IndexKeys, V> IndexKeys for $map<K, V> {
            type Key = K::Key;
            fn each_key(&self, emit: &mut dyn FnMut(K::Key)) {
                self.keys().for_each(|key| key.each_key(emit));
            }
        }
    )+ };
}

maps!(BTreeMap, HashMap, SortedMap);

impl<T: IndexKeys + ?Sized> IndexKeys for Box<T> {
    type Key = T::Key;
    fn each_key(&self, emit: &mut dyn FnMut(T::Key)) {
        (**self).each_key(emit);
    }
}

impl<T: IndexKeys + ?Sized> IndexKeys for &T {
    type Key = T::Key;
    fn each_key(&self, emit: &mut dyn FnMut(T::Key)) {
        (**self).each_key(emit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys<T: IndexKeys>(value: T) -> Vec<T::Key> {
        let mut keys = Vec::new();
        value.each_key(&mut |key| keys.push(key));
        keys
    }

    #[test]
    fn optional_lists_and_maps_have_a_key_for_each_value() {
        let text = |text: &str| text.to_owned();
        assert_eq!(keys(text("a")), ["a"]);
        assert_eq!(keys(None::<String>), Vec::<String>::new());
        assert_eq!(keys(Some(&Some(7_i32))), [7]);
        assert_eq!(keys(vec![Some(true), None, Some(false)]), [true, false]);
        assert_eq!(keys(Some(Box::new(vec![text("a"), text("b")]))), ["a", "b"]);
        let map = BTreeMap::from([(text("k"), 1.5), (text("l"), 2.5)]);
        assert_eq!(keys(&map), ["k", "l"]);
    }
}
