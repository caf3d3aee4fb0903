//! Recognizes stored documents that decoding and encoding would not change, so that they need not be decoded.
//!
//! Most stored documents were written with the current schema. One pass over the bytes, with the schema, decides; in
//! case of doubt a document counts as different, and is decoded, pruned, defaulted and encoded.

use std::cmp::Ordering;

use apiloom_schema::tree::{Child, Node, drops_null};

use super::canonical::{Canonical, MAX_DEPTH};
use super::decode::Decoder;
use super::decoded::Format;
use super::encode::{Encoder, plain_len};
use super::peek::{member, members, value_end};

/// Place of the resourceVersion in a document without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionPlace {
    /// Offset at which the member is inserted.
    pub at: usize,
    /// Whether a comma is needed before it.
    pub follows: bool,
    /// Whether a comma is needed after it.
    pub precedes: bool,
    /// Start and end of the value of `metadata`.
    pub metadata: (usize, usize),
}

impl Encoder<'_> {
    /// Checks whether a stored document without resourceVersion would not change if it were decoded, pruned, defaulted and
    /// encoded again; returns the place of the resourceVersion in it.
    ///
    /// `None` if it would change, or if that cannot be decided without decoding. Values are not validated: stored objects
    /// are served even if the schema would refuse them today.
    pub fn verbatim(self, json: &[u8]) -> Option<VersionPlace> {
        self.is_verbatim(json)
            .then(|| self.version_place(json, ""))?
    }

    /// As [`Encoder::verbatim`], for a document that may have a resourceVersion; false if it would change, or if that
    /// cannot be decided without decoding.
    pub fn is_verbatim(self, json: &[u8]) -> bool {
        std::str::from_utf8(json).is_ok()
            && Canonical { json }.object(0, Some(self.0), 0) == Some(json.len())
    }

    /// The place of the resourceVersion in the result of [`Encoder::object`] for an object without one; `None` if it has
    /// one, or no metadata.
    ///
    /// `entries` is the text of managedFields that the object has, whose end is not searched then; it may be empty.
    pub fn version_place(self, json: &[u8], entries: &str) -> Option<VersionPlace> {
        let metadata = members(json, 0).find(|member| member.name == "metadata")?;
        let start = metadata.value;
        let properties = &self.0.property("metadata")?.node.properties;
        let order = |name: &str| properties.iter().position(|p| p.name == name);
        let own = order("resourceVersion")?;
        let mut behind = None;
        let mut at = (json.get(start) == Some(&b'{')).then_some(start + 1)?;
        while let Some(member) = member(json, at) {
            if behind.is_none() && order(&member.name).is_none_or(|order| order >= own) {
                if member.name == "resourceVersion" {
                    return None;
                }
                behind = Some(member.start);
            }
            let rest = json.get(member.value..)?;
            let is_known = !entries.is_empty() && rest.starts_with(entries.as_bytes());
            let end = if is_known {
                member.value + entries.len()
            } else {
                value_end(json, member.value)?
            };
            at = end + 1;
            if json.get(end) != Some(&b',') {
                break;
            }
        }
        // After a member `at` is behind its brace; that of an object without members is here.
        let brace = if at == start + 1 { at } else { at - 1 };
        let end = (json.get(brace) == Some(&b'}')).then_some(brace + 1)?;
        let at = behind.unwrap_or(brace);
        Some(VersionPlace {
            at,
            follows: behind.is_none() && at > start + 1,
            precedes: behind.is_some(),
            metadata: (start, end),
        })
    }
}

impl<'a> Canonical<'a> {
    fn value(&self, at: usize, node: Option<&Node>, depth: usize) -> Option<usize> {
        if node.is_some_and(|node| node.is_json_text) {
            self.literal(at, b"{")?;
            return self.text(at, depth);
        }
        match self.json.get(at)? {
            b'{' => self.object(at, node, depth),
            b'[' => self.array(at, node, depth),
            _ => self.scalar(at),
        }
    }

    fn array(&self, at: usize, node: Option<&Node>, depth: usize) -> Option<usize> {
        let node = node.and_then(Node::item);
        let is_defaulted = node.is_some_and(|node| {
            node.dialect.defaults_nulls && !node.nullable && node.default.is_some()
        });
        let mut at = self.literal(at, b"[")?;
        if let Some(end) = self.literal(at, b"]") {
            return Some(end);
        }
        let depth = Some(depth + 1).filter(|depth| *depth < MAX_DEPTH)?;
        loop {
            if is_defaulted && self.json.get(at) == Some(&b'n') {
                return None;
            }
            at = self.value(at, node, depth)?;
            match self.literal(at, b",") {
                Some(next) => at = next,
                None => return self.literal(at, b"]"),
            }
        }
    }

    /// The name of the member at a position, and the start of its value.
    fn name(&self, at: usize) -> Option<(&'a [u8], usize)> {
        let start = self.literal(at, b"\"")?;
        let end = start + plain_len(&self.json[start..]);
        // Names with escapes are sorted by their unescaped form.
        let value = self.literal(end, b"\":")?;
        Some((&self.json[start..end], value))
    }

    fn object(&self, start: usize, node: Option<&Node>, depth: usize) -> Option<usize> {
        let inside = Some(depth + 1).filter(|depth| *depth < MAX_DEPTH)?;
        let mut order = Order::of(node);
        let mut at = self.literal(start, b"{")?;
        while self.json.get(at) != Some(&b'}') {
            let (name, value) = self.name(at)?;
            let is_null = self.json.get(value) == Some(&b'n');
            let node = order.take(name, is_null)?;
            if is_null && node.is_some_and(is_absent) {
                return None;
            }
            at = self.value(value, node, inside)?;
            if let Some(next) = self.literal(at, b",") {
                // A trailing comma is not encoded.
                self.literal(next, b"\"")?;
                at = next;
            } else {
                break;
            }
        }
        let end = self.literal(at, b"}")?;
        order.finish(&self.json[start..end])?;
        Some(end)
    }
}

/// Whether a null for this node is dropped, or replaced by a default.
fn is_absent(node: &Node) -> bool {
    drops_null(node) || node.default.is_some() && !node.nullable
}

/// Checks the order of an object's members: the properties of its node, including all with a default, then the other
/// fields sorted.
struct Order<'n, 'a> {
    node: Option<&'n Node>,
    /// The properties after the last member.
    next: usize,
    /// The last member, if it is not a property.
    last: Option<&'a [u8]>,
    /// Number of fields with computed defaults that are present.
    computed: usize,
}

impl<'n, 'a> Order<'n, 'a> {
    fn of(node: Option<&'n Node>) -> Self {
        Self {
            node,
            next: 0,
            last: None,
            computed: 0,
        }
    }

    /// Checks the next member; returns the node of its value.
    fn take(&mut self, name: &'a [u8], is_null: bool) -> Option<Option<&'n Node>> {
        if let Some(node) = self.node.filter(|node| node.dialect.sorts_fields) {
            return self.take_sorted(node, name);
        }
        if let Some(node) = self.node {
            let is_set = |(field, _): &&(&str, _)| field.as_bytes() == name && !is_null;
            self.computed += node.computed.iter().filter(is_set).count();
            for property in node.properties.iter().skip(self.next) {
                self.next += 1;
                if property.name.as_bytes() == name {
                    return Some(Some(&property.node));
                }
                if property.node.default.is_some() {
                    return None;
                }
            }
        }
        if self.last.replace(name).is_some_and(|last| last >= name) {
            return None;
        }
        let Some(node) = self.node else {
            return Some(None);
        };
        let name = std::str::from_utf8(name).ok()?;
        if node.property(name).is_some() {
            return None;
        }
        match node.child(name) {
            Child::Node(node) => Some(Some(node)),
            Child::Free => Some(None),
            Child::Unknown => None,
        }
    }

    /// Checks the next member of an object whose properties and members are sorted.
    fn take_sorted(&mut self, node: &'n Node, name: &'a [u8]) -> Option<Option<&'n Node>> {
        // The defaults of its metadata are applied by the decoder.
        let has_others = node.has_declared_defaults();
        if has_others || self.last.replace(name).is_some_and(|last| last >= name) {
            return None;
        }
        for property in node.properties.iter().skip(self.next) {
            match property.name.as_bytes().cmp(name) {
                Ordering::Greater => break,
                Ordering::Equal => {
                    self.next += 1;
                    return Some(Some(&property.node));
                }
                Ordering::Less if property.node.default.is_some() => return None,
                Ordering::Less => self.next += 1,
            }
        }
        match node.child(std::str::from_utf8(name).ok()?) {
            Child::Node(node) => Some(Some(node)),
            Child::Free => Some(None),
            Child::Unknown => None,
        }
    }

    /// Checks the end of the object, whose bytes are `json`.
    fn finish(self, json: &[u8]) -> Option<()> {
        let Some(node) = self.node else {
            return Some(());
        };
        let mut absent = node.properties.iter().skip(self.next);
        if absent.any(|property| property.node.default.is_some()) {
            return None;
        }
        if self.computed < node.computed.len() {
            let value = Decoder::new(Format::Json).value(json).ok()?;
            let mut defaulted = value.clone();
            apiloom_schema::tree::default(node, &mut defaulted);
            if value != defaulted {
                return None;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
