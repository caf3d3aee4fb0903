//! Typed indexes of a store: rows of objects by keys that a function computes.
//!
//! A row holds slots of the store, not objects. Invariant: the key functions of users run outside of the lock of the
//! store ([`TypedIndex::differences`]), the rows change inside of it.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use apiloom_meta::kind::SmolStr;

use super::object::CacheObject;

/// An index of the objects of a store: finds objects by a key other than their name, without a scan.
///
/// ```
/// use apiloom_client::cache::Index;
///
/// struct Pod { node: Option<String> }
/// struct ByNode;
/// impl Index<Pod> for ByNode {
///     type Key = String;
///     const NAME: &'static str = "node";
///     fn keys(pod: &Pod, emit: &mut dyn FnMut(String)) {
///         pod.node.iter().cloned().for_each(emit);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index of `{T}`",
    note = "implement `Index<{T}>`: the type of its keys, its name, and the keys of an object"
)]
pub trait Index<T>: 'static {
    /// What objects are looked up by.
    type Key: Hash + Eq + Send + Sync + 'static;
    /// The name, for logs and metrics.
    const NAME: &'static str;
    /// Emits the keys of an object: none, one or several; repeated ones count once. The result must depend only on the
    /// object. An object for which this panics has no keys.
    fn keys(object: &T, emit: &mut dyn FnMut(Self::Key));
}

/// Index by namespace. Every store has it; it is used by [`super::Lister::namespace`].
pub struct ByNamespace;

impl<T: CacheObject> Index<T> for ByNamespace {
    type Key = SmolStr;
    const NAME: &'static str = "namespace";
    fn keys(object: &T, emit: &mut dyn FnMut(SmolStr)) {
        emit(SmolStr::new(object.namespace()));
    }
}

/// Index by the uids of the owners.
pub struct ByOwner;

impl<T: CacheObject> Index<T> for ByOwner {
    type Key = SmolStr;
    const NAME: &'static str = "owner";
    fn keys(object: &T, emit: &mut dyn FnMut(SmolStr)) {
        let uids = object.owner_uids();
        uids.into_iter().map(SmolStr::new).for_each(emit);
    }
}

/// The key of a label, as a type: `struct App; impl LabelKey for App { const KEY: &'static str = "app"; }`.
pub trait LabelKey: 'static {
    /// The key of the label.
    const KEY: &'static str;
}

/// Index by the value of one label; objects without the label have no row.
pub struct ByLabel<L>(PhantomData<L>);

impl<T: CacheObject, L: LabelKey> Index<T> for ByLabel<L> {
    type Key = SmolStr;
    const NAME: &'static str = L::KEY;
    fn keys(object: &T, emit: &mut dyn FnMut(SmolStr)) {
        object
            .label(L::KEY)
            .map(SmolStr::new)
            .into_iter()
            .for_each(emit);
    }
}

/// The keys of an object; none if the function panics.
pub(super) fn keys_of<T, I: Index<T>>(object: &T) -> Vec<I::Key> {
    let mut keys = Vec::new();
    let result = catch_unwind(AssertUnwindSafe(|| {
        I::keys(object, &mut |key| keys.push(key));
    }));
    if result.is_err() {
        tracing::error!(index = I::NAME, "the key function of an index panicked");
        keys.clear();
    }
    keys
}

/// Number of a slot of a store.
pub(super) type SlotId = u32;

/// The slots of one key. Most rows of unique keys have one slot, which needs no set.
#[derive(Debug)]
enum Row {
    One(SlotId),
    Many(BTreeSet<SlotId>),
}

impl Row {
    fn insert(&mut self, slot: SlotId) {
        match self {
            Self::One(only) if *only == slot => {}
            Self::One(only) => *self = Self::Many(BTreeSet::from([*only, slot])),
            Self::Many(slots) => {
                slots.insert(slot);
            }
        }
    }
    /// Removes a slot; true if the row is empty then.
    fn remove(&mut self, slot: SlotId) -> bool {
        match self {
            Self::One(only) => *only == slot,
            Self::Many(slots) => {
                slots.remove(&slot);
                slots.is_empty()
            }
        }
    }
    fn slots(&self) -> Vec<SlotId> {
        match self {
            Self::One(only) => vec![*only],
            Self::Many(slots) => slots.iter().copied().collect(),
        }
    }
}

/// A change of one slot: the object before and after it.
pub(super) struct SlotChange<T> {
    pub(super) slot: SlotId,
    pub(super) old: Option<Arc<T>>,
    pub(super) new: Option<Arc<T>>,
}

/// What a batch of changes does to one index: the rows to remove slots from, and those to add them to.
struct Differences<K> {
    removed: Vec<(K, SlotId)>,
    added: Vec<(K, SlotId)>,
}

/// An index of a store, without the type of its keys.
pub(super) trait StoreIndex<T>: Any + Send + Sync {
    /// Computes what changes do to this index; calls functions of the user.
    fn differences(&self, changes: &[SlotChange<T>]) -> Box<dyn Any + Send>;
    /// Applies the result of [`StoreIndex::differences`].
    fn apply(&mut self, differences: Box<dyn Any + Send>);
}

/// The rows of one index.
pub(super) struct TypedIndex<T, I: Index<T>> {
    rows: HashMap<I::Key, Row>,
    object: PhantomData<fn(&T)>,
}

impl<T: CacheObject, I: Index<T>> TypedIndex<T, I> {
    pub(super) fn new() -> Self {
        Self {
            rows: HashMap::new(),
            object: PhantomData,
        }
    }
    /// The slots of a key, in ascending order.
    pub(super) fn slots<Q>(&self, key: &Q) -> Vec<SlotId>
    where
        I::Key: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.rows.get(key).map(Row::slots).unwrap_or_default()
    }
    /// Number of rows; none of them is empty.
    pub(super) fn row_count(&self) -> usize {
        self.rows.len()
    }
}

impl<T: CacheObject, I: Index<T>> StoreIndex<T> for TypedIndex<T, I> {
    fn differences(&self, changes: &[SlotChange<T>]) -> Box<dyn Any + Send> {
        let mut differences = Differences::<I::Key> {
            removed: Vec::new(),
            added: Vec::new(),
        };
        for change in changes {
            let keys = |object: &Option<Arc<T>>| {
                let keys = object.as_deref().map(keys_of::<T, I>);
                keys.unwrap_or_default()
                    .into_iter()
                    .map(|key| (key, change.slot))
            };
            differences.removed.extend(keys(&change.old));
            differences.added.extend(keys(&change.new));
        }
        Box::new(differences)
    }

    fn apply(&mut self, differences: Box<dyn Any + Send>) {
        let differences = differences
            .downcast::<Differences<I::Key>>()
            .expect("differences are applied to the index that computed them");
        // A slot that leaves and joins the same row must be in it at the end.
        for (key, slot) in differences.removed {
            let is_empty = self.rows.get_mut(&key).is_some_and(|row| row.remove(slot));
            if is_empty {
                self.rows.remove(&key);
            }
        }
        for (key, slot) in differences.added {
            self.rows
                .entry(key)
                .and_modify(|row| row.insert(slot))
                .or_insert(Row::One(slot));
        }
    }
}
