//! When two values are the same one: as their schema says, and as rules in CEL compare them. Numbers are compared by value,
//! `1` and `1.0` are the same; the items of sets and of lists with keys have no order.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::node::{ListType, Node, child};
use super::number;

/// A value with what its schema says of it, if there is a schema. It can be a key of a `HashMap`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared<'a> {
    node: Option<&'a Node>,
    value: &'a Value,
}

impl<'a> Compared<'a> {
    fn new(node: Option<&'a Node>, value: &'a Value) -> Self {
        Self { node, value }
    }

    fn child(self, name: &str, value: &'a Value) -> Self {
        Self::new(child(self.node, name), value)
    }
}

/// What tells an item of a list from the others: its keys, or else the item itself.
pub(crate) type Identity<'a> = Vec<Option<Compared<'a>>>;

/// The identity of an item of `list`, whose type is given, as a list without one may be taken for a set.
pub(crate) fn identity<'a>(list: &'a Node, list_type: &ListType, item: &'a Value) -> Identity<'a> {
    let item = Compared::new(list.items.as_deref(), item);
    match list_type {
        ListType::Map(keys) => keys
            .iter()
            .map(|key| Some(item.child(key, item.value.get(key)?)))
            .collect(),
        ListType::Set | ListType::Atomic => vec![Some(item)],
    }
}

/// Whether two values of a schema are the same one.
pub(crate) fn same(node: Option<&Node>, a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => number::compare(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && same_items(node, a, b),
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && same_fields(node, a, b),
        _ => a == b,
    }
}

fn same_fields(node: Option<&Node>, a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.iter().all(|(name, a)| {
        let found = b.get(name);
        found.is_some_and(|b| same(child(node, name), a, b))
    })
}

/// Whether two lists of one length hold the same items.
fn same_items<'a>(node: Option<&'a Node>, a: &'a [Value], b: &'a [Value]) -> bool {
    let items = node.and_then(|node| node.items.as_deref());
    if let Some((list, list_type)) = unordered(node) {
        let by_identity = |items: &'a [Value]| -> HashMap<Identity<'a>, &'a Value> {
            let entry = |item| (identity(list, list_type, item), item);
            items.iter().map(entry).collect()
        };
        let (by_a, by_b) = (by_identity(a), by_identity(b));
        // With twins, which only a bad or an old document has, it is a list like others.
        if by_a.len() == a.len() && by_b.len() == b.len() {
            return by_a.iter().all(|(identity, a)| {
                let found = by_b.get(identity);
                found.is_some_and(|b| same(items, a, b))
            });
        }
    }
    a.iter().zip(b).all(|(a, b)| same(items, a, b))
}

/// The list and its type, if its items have no order.
fn unordered(node: Option<&Node>) -> Option<(&Node, &ListType)> {
    let list = node?;
    let list_type = list.list_type.as_ref()?;
    (*list_type != ListType::Atomic).then_some((list, list_type))
}

impl PartialEq for Compared<'_> {
    fn eq(&self, other: &Self) -> bool {
        same(self.node, self.value, other.value)
    }
}

impl Eq for Compared<'_> {}

/// Numbers are hashed as floats: those that are equal have equal ones. What has no order is hashed as a sum.
impl Hash for Compared<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.value {
            Value::Null => {}
            Value::Bool(flag) => flag.hash(state),
            // Adding zero makes 0 of -0.
            Value::Number(number) => (number::float(number) + 0.0).to_bits().hash(state),
            Value::String(text) => text.hash(state),
            Value::Array(items) => {
                let of_items = self.node.and_then(|node| node.items.as_deref());
                items.len().hash(state);
                let items = items.iter().map(|item| Self::new(of_items, item));
                match unordered(self.node) {
                    Some(_) => sum(items).hash(state),
                    None => items.for_each(|item| item.hash(state)),
                }
            }
            Value::Object(fields) => {
                let fields = fields.iter();
                sum(fields.map(|(name, value)| (name, self.child(name, value)))).hash(state);
            }
        }
    }
}

/// A hash of some values in any order. It has a random key, so that no client can choose values that collide.
fn sum(values: impl Iterator<Item = impl Hash>) -> u64 {
    static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    values.fold(0, |sum: u64, value| {
        sum.wrapping_add(HASHER.hash_one(value))
    })
}
