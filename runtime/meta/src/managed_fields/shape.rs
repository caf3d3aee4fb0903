//! How the fields of a value are owned, by its schema and its JSON type: as one value, by field, or by item.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use apiloom_schema::tree::{Child, ListType, Node, Types};
use serde_json::{Map, Value, json};

use super::path_element::PathElement;
use crate::interrupt::is_interrupted;

/// How the fields of a value are owned.
#[derive(Clone, Copy)]
pub(super) enum Shape<'a> {
    /// As one value: a scalar, a list or map of type atomic, or null.
    Leaf,
    /// Each field on its own.
    Fields(&'a Map<String, Value>),
    /// Each item on its own; the list is of type set or map.
    Items(&'a [Value], ItemKeys<'a>),
}

/// How the items of a list are told apart.
#[derive(Clone, Copy)]
pub(super) struct ItemKeys<'a> {
    /// The fields of an item that identify it; `None` for a set.
    keys: Option<&'a [String]>,
    /// The schema of the items.
    pub(super) node: Option<&'a Node>,
    /// Whether it is a list of ObjectMeta.
    is_of_metadata: bool,
}

impl<'a> Shape<'a> {
    /// The shape of a value. Values without a schema are owned by field; lists without one are one value.
    pub(super) fn of(value: &'a Value, node: Option<&'a Node>) -> Self {
        match value {
            Value::Object(fields) if node.and_then(|node| node.atomic_map) != Some(true) => {
                Self::Fields(fields)
            }
            Value::Array(items) => match node.and_then(|node| node.list_type.as_ref()) {
                Some(ListType::Set) => Self::Items(items, ItemKeys::new(None, node)),
                Some(ListType::Map(keys)) => Self::Items(items, ItemKeys::new(Some(keys), node)),
                Some(ListType::Atomic) | None => Self::Leaf,
            },
            _ => Self::Leaf,
        }
    }
}

impl<'a> ItemKeys<'a> {
    fn new(keys: Option<&'a [String]>, list: Option<&'a Node>) -> Self {
        Self {
            keys,
            node: list.and_then(|node| node.items.as_deref()),
            is_of_metadata: list.is_some_and(|node| node.twins_allowed),
        }
    }

    /// The element of an item. Keys that the item does not have are those of the schema's defaults.
    ///
    /// # Errors
    /// If it cannot be told apart from others; the text is that of Kubernetes.
    pub(super) fn element(&self, item: &Value) -> Result<PathElement, String> {
        let Some(keys) = self.keys else {
            return match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => {
                    Err("not supported: associative list with lists as elements".to_owned())
                }
                Value::Null => Err(
                    "associative list without keys has an element that's an explicit null"
                        .to_owned(),
                ),
                scalar => Ok(PathElement::Value(scalar.clone())),
            };
        };
        let Value::Object(fields) = item else {
            let what = if item.is_null() {
                "a null element"
            } else {
                "non-map elements"
            };
            return Err(format!("associative list with keys may not have {what}"));
        };
        let values: Vec<(&str, Value)> = keys
            .iter()
            .filter_map(|key| {
                let value = fields.get(key).or_else(|| self.default(key))?;
                Some((key.as_str(), value.clone()))
            })
            .collect();
        if values.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
                 values for any key fields)",
                keys.join(" ")
            ));
        }
        Ok(PathElement::key(values))
    }

    /// Whether the list is of type set.
    pub(super) fn is_set(&self) -> bool {
        self.keys.is_none()
    }

    /// The value that the schema gives to a key that an item does not have. A key of a type that every item has, which an
    /// apply may leave out, has the zero value of Go: the errors of validation tell that it is missing.
    pub(super) fn default(&self, key: &str) -> Option<&'a Value> {
        let property = self.node?.property(key)?;
        let node = &property.node;
        let is_field = node.dialect.is_typed && (property.required || self.is_of_metadata);
        node.default
            .as_ref()
            .or_else(|| is_field.then(|| zero(node))?)
    }

    /// The items by their elements, in the order of the elements. Items without one are left out: a stored list may have
    /// them, and they have no owner.
    pub(super) fn group(&self, items: &'a [Value]) -> BTreeMap<PathElement, Vec<&'a Value>> {
        let mut groups: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
        for item in items {
            if is_interrupted() {
                break;
            }
            if let Ok(element) = self.element(item) {
                groups.entry(element).or_default().push(item);
            }
        }
        groups
    }
}

/// The zero value of Go for a key of this type.
fn zero(node: &Node) -> Option<&'static Value> {
    static TEXT: LazyLock<Value> = LazyLock::new(|| json!(""));
    static NUMBER: LazyLock<Value> = LazyLock::new(|| json!(0));
    match node.types {
        Types::STRING => Some(&TEXT),
        Types::INTEGER => Some(&NUMBER),
        _ => None,
    }
}

/// The schema of a field, and whether it is a field that the schema names, rather than a key of a map.
pub(super) fn field<'a>(node: Option<&'a Node>, name: &str) -> (Option<&'a Node>, bool) {
    let Some(node) = node else {
        return (None, false);
    };
    let is_named = node.property(name).is_some();
    match node.child(name) {
        Child::Node(below) => (Some(below), is_named),
        Child::Free | Child::Unknown => (None, is_named),
    }
}

/// Whether a value is an empty list or map, or null.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
