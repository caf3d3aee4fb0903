//! Applies defaults and prunes unknown fields.

use serde_json::{Map, Value};

use super::node::{Child, Node};
use crate::interrupt::is_interrupted;

/// Error: the defaults of a document exceed their size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the defaults have more than {max_bytes} bytes of JSON")]
pub struct DefaultsTooLarge {
    /// The limit, in bytes of JSON.
    pub max_bytes: usize,
}

/// Applies the defaults of absent fields, recursively. A null that means absent counts as absent. Returns whether any
/// were applied.
pub fn default(node: &Node, value: &mut Value) -> bool {
    let mut room = Room::new(usize::MAX);
    put(node, value, &mut room);
    room.is_used
}

/// As [`default`], with a limit for the size of the defaults as JSON: an item of three bytes may have a default of a
/// thousand.
pub(crate) fn default_within(
    node: &Node,
    value: &mut Value,
    max_bytes: usize,
) -> Result<bool, DefaultsTooLarge> {
    let mut room = Room::new(max_bytes);
    put(node, value, &mut room);
    if room.bytes == 0 {
        return Err(DefaultsTooLarge { max_bytes });
    }
    Ok(room.is_used)
}

/// Remaining size for defaults.
struct Room {
    /// Bytes left; none at zero.
    bytes: usize,
    /// Whether any defaults were applied.
    is_used: bool,
}

impl Room {
    fn new(bytes: usize) -> Self {
        Self {
            bytes,
            is_used: false,
        }
    }

    /// Takes the size of a default; false if nothing is left.
    fn has_room_for(&mut self, put: &Value) -> bool {
        if self.bytes < usize::MAX {
            self.bytes = self.bytes.saturating_sub(len(put));
        }
        self.is_used |= self.bytes > 0;
        self.bytes > 0
    }
}

/// Approximate size of a value as JSON in bytes, never more than the real size.
fn len(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 3,
        Value::Array(items) => items.iter().map(len).sum::<usize>() + 3,
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| name.len() + len(value) + 3);
            fields.sum::<usize>() + 3
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 3,
    }
}

fn put(node: &Node, value: &mut Value, room: &mut Room) {
    if !node.has_defaults || room.bytes == 0 || is_interrupted() {
        return;
    }
    match value {
        Value::Object(fields) => default_fields(node, fields, room),
        Value::Array(elements) => {
            if let Some(items) = &node.items {
                for element in elements {
                    put_entry(items, element, room);
                }
            }
        }
        _ => {}
    }
    // Computed defaults are applied after the declared ones of their siblings.
    for (name, compute) in &node.computed {
        let absent = value
            .as_object()
            .is_some_and(|fields| fields.get(*name).is_none_or(Value::is_null));
        if !absent {
            continue;
        }
        let Some(mut computed) = compute(value) else {
            continue;
        };
        if !room.has_room_for(&computed) {
            return;
        }
        if let Some(property) = node.property(name) {
            put(&property.node, &mut computed, room);
        }
        if let Value::Object(fields) = value {
            fields.insert((*name).to_owned(), computed);
        }
    }
}

fn default_fields(node: &Node, fields: &mut Map<String, Value>, room: &mut Room) {
    // A custom resource may have defaults for the fields that every object has.
    let declared = node.custom.iter().flat_map(|custom| &custom.declared);
    for property in node
        .properties
        .iter()
        .chain(declared)
        .filter(|property| property.node.has_defaults)
    {
        let below = &property.node;
        match (fields.get_mut(&property.name), &below.default) {
            (Some(Value::Null), Some(_)) if below.nullable => {}
            (None | Some(Value::Null), Some(default)) => {
                if !room.has_room_for(default) {
                    return;
                }
                let mut default = default.clone();
                put(below, &mut default, room);
                fields.insert(property.name.clone(), default);
            }
            (Some(present), _) => put(below, present, room),
            (None, None) => {}
        }
    }
    if let Some(additional) = node
        .additional
        .as_deref()
        .filter(|additional| additional.has_defaults)
    {
        for (_, value) in fields
            .iter_mut()
            .filter(|(name, _)| node.property(name).is_none())
        {
            put_entry(additional, value, room);
        }
    }
}

/// Defaults an item of a list or a value of a map, where a null may be replaced too.
fn put_entry(node: &Node, value: &mut Value, room: &mut Room) {
    if node.dialect.defaults_nulls
        && value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        if !room.has_room_for(default) {
            return;
        }
        *value = default.clone();
    }
    put(node, value, room);
}

/// Drops unknown fields, and nulls that mean absent.
pub(crate) fn prune(node: &Node, value: &mut Value) {
    if is_interrupted() {
        return;
    }
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| match node.child(name) {
                Child::Unknown => false,
                Child::Free => true,
                Child::Node(below) if field.is_null() => !drops_null(below),
                Child::Node(below) => {
                    prune(below, field);
                    true
                }
            });
        }
        Value::Array(elements) => {
            if let Some(items) = node.item() {
                elements
                    .iter_mut()
                    .for_each(|element| prune(items, element));
            }
        }
        _ => {}
    }
}

/// Whether a null for this node means that the field is absent.
#[inline]
pub fn drops_null(node: &Node) -> bool {
    let is_replaced = node.dialect.defaults_nulls && node.default.is_some();
    // One of any type in a compiled kind may be null.
    let is_value = node.dialect.keeps_undescribed && node.types.is_any() && node.is_open();
    !(node.nullable || is_replaced || is_value)
}
