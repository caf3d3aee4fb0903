//! Recognizes stored documents that decoding and encoding would not change, so that they need not be decoded.
//!
//! Most stored documents were written with the current schema. One pass over the bytes, with the schema, decides; in
//! case of doubt a document counts as different, and is decoded, pruned, defaulted and encoded.

use serde_json::Value;

use super::decode::decode;
use super::decoded::Format;
use super::encode::{append, plain_len};
use super::peek::{members, value_end};
use crate::schema::drops_null;
use crate::schema::node::{Child, Node};

/// Maximum nesting: below the decoder's limit, above that of usual documents.
const MAX_DEPTH: usize = 64;

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

/// See [`super::verbatim`].
pub(super) fn verbatim(json: &[u8], root: &Node) -> Option<VersionPlace> {
    is_verbatim(json, root).then(|| version_place(json, root))?
}

/// See [`super::is_verbatim`].
pub(super) fn is_verbatim(json: &[u8], root: &Node) -> bool {
    std::str::from_utf8(json).is_ok() && Walk { json }.object(0, Some(root), 0) == Some(json.len())
}

/// See [`super::version_place`].
pub(super) fn version_place(json: &[u8], root: &Node) -> Option<VersionPlace> {
    let start = members(json, 0)
        .find(|member| member.name == "metadata")?
        .value;
    let end = value_end(json, start).filter(|_| json.get(start) == Some(&b'{'))?;
    let properties = &root.property("metadata")?.node.properties;
    let order = |name: &str| properties.iter().position(|p| p.name == name);
    let own = order("resourceVersion")?;
    let behind = members(json, start).find(|member| {
        let order = order(&member.name);
        order.is_none_or(|order| order >= own)
    });
    if behind.as_ref().is_some_and(|m| m.name == "resourceVersion") {
        return None;
    }
    let at = behind.as_ref().map_or(end - 1, |member| member.start);
    Some(VersionPlace {
        at,
        follows: behind.is_none() && at > start + 1,
        precedes: behind.is_some(),
        metadata: (start, end),
    })
}

/// One pass over a document. Each method takes a position and returns the one after the element in its name; `None`
/// means that the document differs, or may differ, from the encoder's output.
struct Walk<'a> {
    json: &'a [u8],
}

impl<'a> Walk<'a> {
    fn literal(&self, at: usize, literal: &[u8]) -> Option<usize> {
        let end = at.checked_add(literal.len())?;
        (self.json.get(at..end)? == literal).then_some(end)
    }

    fn value(&self, at: usize, node: Option<&Node>, depth: usize) -> Option<usize> {
        if node.is_some_and(|node| node.is_json_text) {
            self.literal(at, b"{")?;
            return self.text(at, depth);
        }
        match self.json.get(at)? {
            b'"' => self.string(at),
            b'{' => self.object(at, node, depth),
            b'[' => self.array(at, node, depth),
            b't' => self.literal(at, b"true"),
            b'f' => self.literal(at, b"false"),
            b'n' => self.literal(at, b"null"),
            _ => self.number(at),
        }
    }

    fn string(&self, at: usize) -> Option<usize> {
        let mut at = self.literal(at, b"\"")?;
        loop {
            at += plain_len(self.json.get(at..)?);
            match self.json.get(at)? {
                b'"' => return Some(at + 1),
                b'\\' => at = self.escape(at)?,
                // U+2028 and U+2029 would have been escaped.
                0xe2 if !matches!(self.json.get(at + 1..at + 3)?, [0x80, 0xa8 | 0xa9]) => at += 3,
                _ => return None,
            }
        }
    }

    fn escape(&self, at: usize) -> Option<usize> {
        match self.json.get(at + 1)? {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 2),
            b'u' => {
                let is_escaped = match self.json.get(at + 2..at + 6)? {
                    b"003c" | b"003e" | b"0026" | b"2028" | b"2029" => true,
                    [b'0', b'0', b'0', low] => {
                        // The other control characters have shorter escapes.
                        matches!(low, b'0'..=b'7' | b'b' | b'e' | b'f')
                    }
                    [b'0', b'0', b'1', low] => matches!(low, b'0'..=b'9' | b'a'..=b'f'),
                    _ => false,
                };
                is_escaped.then_some(at + 6)
            }
            _ => None,
        }
    }

    fn number(&self, at: usize) -> Option<usize> {
        let rest = self.json.get(at..)?;
        let len = rest
            .iter()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .count();
        let number = &rest[..len];
        let digits = number.strip_prefix(b"-").unwrap_or(number);
        let is_short_integer = digits.len() <= 18
            && digits.iter().all(u8::is_ascii_digit)
            && digits.first().is_some_and(|first| *first != b'0');
        if is_short_integer || number == b"0" {
            return Some(at + len);
        }
        let value: Value = serde_json::from_slice(number).ok()?;
        let mut written = Vec::new();
        append(&value, &mut written);
        (written == number).then_some(at + len)
    }

    fn array(&self, at: usize, node: Option<&Node>, depth: usize) -> Option<usize> {
        let node = node.and_then(|node| node.items.as_deref());
        let mut at = self.literal(at, b"[")?;
        if let Some(end) = self.literal(at, b"]") {
            return Some(end);
        }
        let depth = Some(depth + 1).filter(|depth| *depth < MAX_DEPTH)?;
        loop {
            at = self.value(at, node, depth)?;
            match self.literal(at, b",") {
                Some(next) => at = next,
                None => return self.literal(at, b"]"),
            }
        }
    }

    /// A value that documents hold as text: in canonical form, with members in any order.
    fn text(&self, at: usize, depth: usize) -> Option<usize> {
        let (is_object, close): (bool, &[u8]) = match self.json.get(at)? {
            b'{' => (true, b"}"),
            b'[' => (false, b"]"),
            _ => return self.value(at, None, depth),
        };
        let depth = Some(depth + 1).filter(|depth| *depth < MAX_DEPTH)?;
        let mut at = at + 1;
        if let Some(end) = self.literal(at, close) {
            return Some(end);
        }
        loop {
            if is_object {
                at = self.string(at).and_then(|end| self.literal(end, b":"))?;
            }
            at = self.text(at, depth)?;
            match self.literal(at, b",") {
                Some(next) => at = next,
                None => return self.literal(at, close),
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
            let value = decode(json, Format::Json, None).ok()?.value;
            let mut defaulted = value.clone();
            crate::schema::default_value(node, &mut defaulted);
            if value != defaulted {
                return None;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
