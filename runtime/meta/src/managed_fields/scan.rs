//! Compares the JSON of `fieldsV1` with sets of fields, in one pass and without a set of its own.
//!
//! Most entries own none of the fields that a write changes, and stay as they are. In case of doubt the answers here are
//! "maybe", and the JSON is read.

use std::borrow::Cow;

use apiloom_schema::tree::{Child, ListType, Node};

use super::changes::FieldChanges;
use super::field_set::{FieldSet, SetNode};
use super::path_element::PathElement;
use crate::codec::{string_end, value_end};
use crate::schema::Schema;

/// Whether fields with this JSON stay as they are after a change: none of them is in the sets, and all have the form of the
/// schema. `false` if that is not certain.
pub(super) fn is_untouched<const N: usize>(
    json: &str,
    changes: [&FieldSet; N],
    schema: &Schema,
) -> bool {
    let scan = Scan { json };
    scan.untouched(0, changes, Some(schema.root())) == Some(json.len())
}

/// Whether fields with this JSON have all members of a set. `false` if that is not certain.
pub(super) fn has_all(json: &str, set: &FieldSet) -> bool {
    let scan = Scan { json };
    scan.count(0, set)
        .is_some_and(|found| found.members == set.len() && found.end == json.len())
}

impl FieldChanges {
    /// The sets of fields that a manager can lose, if they are not its own values.
    pub(super) fn sets(&self) -> [&FieldSet; 3] {
        [&self.removed, &self.modified, &self.added]
    }
}

struct Scan<'a> {
    json: &'a str,
}

/// What is found of a set in the object at a position.
struct Found {
    members: usize,
    /// Whether the object says that the field itself is a member.
    has_dot: bool,
    end: usize,
}

/// A key of the JSON.
enum Key<'a> {
    Dot,
    Field(&'a str),
    /// An item, or a field whose name has escapes.
    Other(Cow<'a, str>),
}

impl<'a> Scan<'a> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.json.as_bytes().get(at).copied()
    }

    /// The key at a position, and the position of its value.
    fn key(&self, at: usize) -> Option<(Key<'a>, usize)> {
        let end = string_end(self.json.as_bytes(), at)?;
        let quoted = self.json.get(at..end)?;
        let text = quoted.get(1..quoted.len() - 1)?;
        let key = match text {
            "." => Key::Dot,
            _ if quoted.contains('\\') => {
                Key::Other(serde_json::from_str::<String>(quoted).ok()?.into())
            }
            _ => match text.strip_prefix("f:") {
                Some(name) => Key::Field(name),
                None => Key::Other(text.into()),
            },
        };
        (self.byte(end)? == b':').then_some((key, end + 1))
    }

    /// The position after a comma, or after the closing brace, and whether it is that.
    fn next(&self, at: usize) -> Option<(usize, bool)> {
        match self.byte(at)? {
            b',' => Some((at + 1, false)),
            b'}' => Some((at + 1, true)),
            _ => None,
        }
    }

    /// The position of the first key of the object at a position; `Err` has the end of an empty one.
    fn begin(&self, at: usize) -> Option<Result<usize, usize>> {
        match (self.byte(at)?, self.byte(at + 1)?) {
            (b'{', b'}') => Some(Err(at + 2)),
            (b'{', _) => Some(Ok(at + 1)),
            _ => None,
        }
    }

    /// The end of the object at a position; `None` if one of its fields is, or may be, in a set, or would be changed to
    /// those of the schema.
    fn untouched<const N: usize>(
        &self,
        at: usize,
        changes: [&FieldSet; N],
        node: Option<&Node>,
    ) -> Option<usize> {
        let mut at = match self.begin(at)? {
            Ok(first) => first,
            Err(end) => return Some(end),
        };
        loop {
            let (key, value) = self.key(at)?;
            let field = match &key {
                Key::Dot => None,
                Key::Field(name) => Some(*name),
                Key::Other(key) => key.strip_prefix("f:"),
            };
            let end = match (&key, field) {
                (Key::Dot, _) => value_end(self.json.as_bytes(), value)?,
                (_, Some(name)) => {
                    if node.is_some_and(|node| node.atomic_map == Some(true)) {
                        return None;
                    }
                    let below = changes.map(|set| below(set.field(name)));
                    self.untouched(value, all(below)?, child(node, name))?
                }
                (Key::Other(key), None) => {
                    if key.as_bytes().get(1) != Some(&b':') || node.is_some_and(is_one_value) {
                        return None;
                    }
                    let below = if changes.iter().all(|set| set.is_empty()) {
                        changes.map(Some)
                    } else {
                        let element = PathElement::parse(key).ok()??;
                        changes.map(|set| below(set.node(&element)))
                    };
                    let items = node.and_then(|node| node.items.as_deref());
                    self.untouched(value, all(below)?, items)?
                }
                (Key::Field(_), None) => return None,
            };
            match self.next(end)? {
                (end, true) => return Some(end),
                (next, false) => at = next,
            }
        }
    }

    /// The members of a set that the object at a position has.
    fn count(&self, at: usize, set: &FieldSet) -> Option<Found> {
        let mut found = Found {
            members: 0,
            has_dot: false,
            end: 0,
        };
        let mut at = match self.begin(at)? {
            Ok(first) => first,
            Err(end) => return Some(Found { end, ..found }),
        };
        let mut last: *const SetNode = std::ptr::null();
        loop {
            let (key, value) = self.key(at)?;
            let node = match &key {
                Key::Dot => {
                    found.has_dot = true;
                    None
                }
                Key::Field(name) => set.field(name),
                Key::Other(key) => PathElement::parse(key)
                    .ok()?
                    .and_then(|element| set.node(&element)),
            };
            let end = match node {
                None => value_end(self.json.as_bytes(), value)?,
                Some(node) => {
                    // The nodes are in one sorted list. A key that comes again, of which the last one counts, must not be
                    // counted twice.
                    if std::ptr::from_ref(node) <= last {
                        return None;
                    }
                    last = node;
                    let below = self.count(value, &node.below)?;
                    // A field without any below it is a member; one with others says so by a dot.
                    let is_member = below.has_dot || below.end == value + 2;
                    found.members += below.members + usize::from(is_member && node.is_member);
                    below.end
                }
            };
            match self.next(end)? {
                (end, true) => return Some(Found { end, ..found }),
                (next, false) => at = next,
            }
        }
    }
}

/// The members below a node; `None` if it is a member itself.
fn below(node: Option<&SetNode>) -> Option<&FieldSet> {
    match node {
        None => Some(const { &FieldSet::empty() }),
        Some(node) => (!node.is_member).then_some(&node.below),
    }
}

fn all<const N: usize>(sets: [Option<&FieldSet>; N]) -> Option<[&FieldSet; N]> {
    let mut every = [const { &FieldSet::empty() }; N];
    for (place, set) in every.iter_mut().zip(sets) {
        *place = set?;
    }
    Some(every)
}

fn child<'n>(node: Option<&'n Node>, name: &str) -> Option<&'n Node> {
    match node?.child(name) {
        Child::Node(below) => Some(below),
        Child::Free | Child::Unknown => None,
    }
}

/// Whether the items of a list have no owners of their own.
fn is_one_value(list: &Node) -> bool {
    list.items.is_some() && matches!(list.list_type, Some(ListType::Atomic) | None)
}
