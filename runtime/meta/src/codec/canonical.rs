//! Recognizes JSON that has the form of the encoder: strings, numbers, and values that documents keep as text.

use serde_json::Value;

use super::encode::{Encoder, plain_len};

/// Maximum nesting: below the decoder's limit, above that of usual documents.
pub(super) const MAX_DEPTH: usize = 64;

/// Whether JSON has the form in which documents keep it as text: that of [`super::json_text`].
pub(super) fn is_text(json: &str) -> bool {
    let json = json.as_bytes();
    Canonical { json }.text(0, 0) == Some(json.len())
}

/// One pass over a document. Each method takes a position and returns the one after the element in its name; `None`
/// means that the document differs, or may differ, from the encoder's output.
pub(super) struct Canonical<'a> {
    pub(super) json: &'a [u8],
}

impl Canonical<'_> {
    pub(super) fn literal(&self, at: usize, literal: &[u8]) -> Option<usize> {
        let end = at.checked_add(literal.len())?;
        (self.json.get(at..end)? == literal).then_some(end)
    }

    pub(super) fn scalar(&self, at: usize) -> Option<usize> {
        match self.json.get(at)? {
            b'"' => self.string(at),
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
        // A custom resource would have it as a float, or as zero.
        let is_other = (value.is_u64() && !value.is_i64()) || number == b"-0";
        if is_other {
            return None;
        }
        let mut written = Vec::new();
        Encoder::append_json(&value, &mut written);
        (written == number).then_some(at + len)
    }

    /// A value that documents hold as text: in canonical form, with members in any order.
    pub(super) fn text(&self, at: usize, depth: usize) -> Option<usize> {
        let (is_object, close): (bool, &[u8]) = match self.json.get(at)? {
            b'{' => (true, b"}"),
            b'[' => (false, b"]"),
            _ => return self.scalar(at),
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
}
