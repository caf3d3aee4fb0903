//! Equality of values according to their schema, and to rules in CEL. Numbers are compared by value: `1` and `1.0` are
//! equal; the order of items in sets and lists with keys is ignored.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::node::{ListType, Node, child};
use crate::number;

/// A value with its schema, if there is one. Can be a key of a `HashMap`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedValue<'a> {
    node: Option<&'a Node>,
    value: &'a Value,
}

impl<'a> ComparedValue<'a> {
    fn new(node: Option<&'a Node>, value: &'a Value) -> Self {
        Self { node, value }
    }

    /// A value without a schema.
    pub(crate) fn plain(value: &'a Value) -> Self {
        Self::new(None, value)
    }

    fn child(self, name: &str, value: &'a Value) -> Self {
        Self::new(child(self.node, name), value)
    }
}

/// Identity of a list item: its keys, or else the item itself.
pub(crate) type Identity<'a> = Vec<Option<ComparedValue<'a>>>;

/// The identity of an item of `list`. The list type is a parameter, since a list without one may be treated as a set.
pub(crate) fn identity<'a>(list: &'a Node, list_type: &ListType, item: &'a Value) -> Identity<'a> {
    let item = ComparedValue::new(list.items.as_deref(), item);
    match list_type {
        ListType::Map(keys) => keys
            .iter()
            .map(|key| Some(item.child(key, item.value.get(key)?)))
            .collect(),
        ListType::Set | ListType::Atomic => vec![Some(item)],
    }
}

/// Whether two values of a schema are equal.
pub(crate) fn same(node: Option<&Node>, a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => number::is_equal(a, b),
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

/// Whether two lists of the same length have the same items.
fn same_items<'a>(node: Option<&'a Node>, a: &'a [Value], b: &'a [Value]) -> bool {
    let items = node.and_then(|node| node.items.as_deref());
    if let Some((list, list_type)) = unordered(node) {
        let by_identity = |items: &'a [Value]| -> HashMap<Identity<'a>, &'a Value> {
            let entry = |item| (identity(list, list_type, item), item);
            items.iter().map(entry).collect()
        };
        let (by_a, by_b) = (by_identity(a), by_identity(b));
        // With duplicates, which only an invalid or an old document has, the order matters.
        if by_a.len() == a.len() && by_b.len() == b.len() {
            return by_a.iter().all(|(identity, a)| {
                let found = by_b.get(identity);
                found.is_some_and(|b| same(items, a, b))
            });
        }
    }
    a.iter().zip(b).all(|(a, b)| same(items, a, b))
}

/// The list and its type, if its order is ignored.
fn unordered(node: Option<&Node>) -> Option<(&Node, &ListType)> {
    let list = node?;
    let list_type = list.list_type.as_ref()?;
    (*list_type != ListType::Atomic).then_some((list, list_type))
}

impl PartialEq for ComparedValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        same(self.node, self.value, other.value)
    }
}

impl Eq for ComparedValue<'_> {}

/// Numbers are hashed by their value, which is equal for equal numbers alone. Unordered items are hashed as a sum.
impl Hash for ComparedValue<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.value {
            Value::Null => {}
            Value::Bool(flag) => flag.hash(state),
            // Not as floats, which many large integers have in common.
            Value::Number(number) => match number::integral(number) {
                Some(integer) => integer.hash(state),
                None => number::float(number).to_bits().hash(state),
            },
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

/// A hash of some values in any order. Its key is random, so that clients cannot choose values that collide.
fn sum(values: impl Iterator<Item = impl Hash>) -> u64 {
    static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    values.fold(0, |sum: u64, value| {
        sum.wrapping_add(HASHER.hash_one(value))
    })
}
