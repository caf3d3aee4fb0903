//! JSON that a document keeps as text, written while the document is decoded.
//!
//! The text is compact, with the escapes and numbers of the encoder, so that it is copied into encoded documents as it
//! is. Members keep their order.

use std::fmt;

use apiloom_schema::number::shortest;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::decoded::MAX_EXPANDED_BYTES;
use super::encode::Encoder;
use super::keys::Key;
use super::limits::{MAX_DEPTH, TOO_DEEP};

/// Writes a value as text while it is decoded.
pub(super) struct JsonText<'a> {
    out: &'a mut Vec<u8>,
    /// Whether the keys are those of YAML, which need not be strings there.
    is_yaml: bool,
    /// The nesting of the value in its document.
    depth: usize,
}

impl<'a> JsonText<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, is_yaml: bool, depth: usize) -> Self {
        Self {
            out,
            is_yaml,
            depth,
        }
    }

    /// Writes an object.
    ///
    /// # Errors
    /// Those of the decoder, and for text that is nested too deeply, or is larger than a YAML document may be.
    pub(super) fn members<'de, A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Self {
            out,
            is_yaml,
            depth,
        } = self;
        let depth = depth + 1;
        out.push(b'{');
        let mut is_first = true;
        while let Some(key) = access.next_key_seed(Key { is_yaml })? {
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            Encoder::append_text(&key.name, out);
            out.push(b':');
            access.next_value_seed(JsonText::new(out, is_yaml, depth))?;
            if is_yaml && out.len() > MAX_EXPANDED_BYTES {
                return Err(A::Error::custom("too large"));
            }
        }
        out.push(b'}');
        Ok(())
    }

    fn push<E>(self, text: &str) -> Result<(), E> {
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for JsonText<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth > MAX_DEPTH {
            return Err(D::Error::custom(TOO_DEEP));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonText<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        self.push("null")
    }
    fn visit_none<E>(self) -> Result<(), E> {
        self.push("null")
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.push(if value { "true" } else { "false" })
    }
    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        Encoder::append_json(&value, self.out);
        Ok(())
    }
    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        Encoder::append_json(&value, self.out);
        Ok(())
    }
    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        Encoder::append_json(&shortest(value), self.out);
        Ok(())
    }
    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        Encoder::append_text(value, self.out);
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Self {
            out,
            is_yaml,
            depth,
        } = self;
        out.push(b'[');
        let start = out.len();
        loop {
            let item = out.len();
            if item > start {
                out.push(b',');
            }
            let element = access.next_element_seed(JsonText::new(out, is_yaml, depth + 1))?;
            if element.is_none() {
                out.truncate(item);
                break;
            }
            if is_yaml && out.len() > MAX_EXPANDED_BYTES {
                return Err(A::Error::custom("too large"));
            }
        }
        out.push(b']');
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<(), A::Error> {
        self.members(access)
    }
}

#[cfg(test)]
mod tests;
