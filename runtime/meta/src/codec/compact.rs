//! Decodes compact JSON, as the encoder of this codec writes it, to types. It looks for no white space and checks the text
//! only once, so it needs half of the time of serde_json.
//!
//! Invariant: serde_json decodes the same JSON to the same value. What this file does not know is an error, although it
//! may be good JSON: callers then use serde_json. JSON that is not well-formed may be decoded where a type ignores it.

use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer as _,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::encode::plain_len;
use super::peek::{string_end, value_end};
use crate::types::FieldsV1;

/// Maximum nesting, below that of serde_json.
const MAX_DEPTH: usize = 100;

/// The beginning of the names with which serde_json's own types ask for text.
const OWN_NAME: &str = "$serde_json::";

/// Maximum digits of an integer that fits into 64 bits in any case.
const MAX_DIGITS: usize = 18;

/// Decodes a document; `None` if it is not compact JSON of the type.
pub(super) fn decode<T: DeserializeOwned>(json: &str) -> Option<T> {
    let mut reader = Reader {
        json,
        at: 0,
        depth: 0,
    };
    let value = T::deserialize(&mut reader).ok()?;
    (reader.at == json.len()).then_some(value)
}

/// It is not known here, or is not of the type. The text of a visitor is not kept.
#[derive(Debug)]
struct Unknown;

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown JSON")
    }
}

impl std::error::Error for Unknown {}

impl de::Error for Unknown {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// The position in a document.
struct Reader<'de> {
    json: &'de str,
    at: usize,
    depth: usize,
}

impl<'de> Reader<'de> {
    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    /// Takes this byte.
    fn take(&mut self, byte: u8) -> Result<(), Unknown> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(Unknown)
        }
    }

    /// Takes this byte if it is next.
    fn takes(&mut self, byte: u8) -> bool {
        self.take(byte).is_ok()
    }

    fn literal(&mut self, literal: &str) -> Result<(), Unknown> {
        let rest = self.json.get(self.at..).ok_or(Unknown)?;
        if !rest.starts_with(literal) {
            return Err(Unknown);
        }
        self.at += literal.len();
        Ok(())
    }

    /// Takes a value as text.
    fn text_of_value(&mut self) -> Result<&'de str, Unknown> {
        let end = value_end(self.json.as_bytes(), self.at).ok_or(Unknown)?;
        let text = self.json.get(self.at..end).ok_or(Unknown)?;
        self.at = end;
        Ok(text)
    }

    /// Takes a value as serde_json decodes it.
    fn by_serde_json<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unknown> {
        let mut deserializer = serde_json::Deserializer::from_str(self.text_of_value()?);
        let value = deserializer.deserialize_any(visitor);
        value.map_err(|_| Unknown)
    }

    /// Takes a string without escapes; `None`, and nothing is taken, if it has some.
    fn plain_string(&mut self) -> Result<Option<&'de str>, Unknown> {
        let start = self.at + 1;
        let bytes = self.json.as_bytes();
        if self.peek() != Some(b'"') {
            return Err(Unknown);
        }
        let mut end = start;
        loop {
            end += plain_len(bytes.get(end..).ok_or(Unknown)?);
            match bytes.get(end) {
                Some(b'"') => {
                    self.at = end + 1;
                    return self.json.get(start..end).map(Some).ok_or(Unknown);
                }
                Some(b'\\') => return Ok(None),
                // The encoder escapes it or the line separators that begin so, and serde_json does not mind.
                Some(b'<' | b'>' | b'&' | 0xe2) => end += 1,
                _ => return Err(Unknown),
            }
        }
    }

    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unknown> {
        if let Some(text) = self.plain_string()? {
            return visitor.visit_borrowed_str(text);
        }
        let end = string_end(self.json.as_bytes(), self.at).ok_or(Unknown)?;
        let quoted = self.json.get(self.at..end).ok_or(Unknown)?;
        self.at = end;
        let text: String = serde_json::from_str(quoted).map_err(|_| Unknown)?;
        visitor.visit_str(&text)
    }

    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unknown> {
        let rest = self.json.as_bytes().get(self.at..).ok_or(Unknown)?;
        let is_negative = rest.first() == Some(&b'-');
        let digits = &rest[usize::from(is_negative)..];
        let len = digits.iter().take_while(|byte| byte.is_ascii_digit());
        let len = len.count();
        let is_integer = !matches!(digits.get(len), Some(b'.' | b'e' | b'E'));
        let begins_with_zero = digits.first() == Some(&b'0');
        if !is_integer || len > MAX_DIGITS || begins_with_zero && (len > 1 || is_negative) {
            return self.by_serde_json(visitor);
        }
        if len == 0 {
            return Err(Unknown);
        }
        self.at += usize::from(is_negative) + len;
        let digits = digits[..len].iter();
        let value = digits.fold(0, |value: u64, digit| value * 10 + u64::from(digit - b'0'));
        if is_negative {
            let value = i64::try_from(value).map_err(|_| Unknown)?;
            visitor.visit_i64(-value)
        } else {
            visitor.visit_u64(value)
        }
    }

    /// Begins a list or an object.
    fn begin(&mut self, bracket: u8) -> Result<(), Unknown> {
        self.take(bracket)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Unknown);
        }
        Ok(())
    }

    fn end(&mut self, bracket: u8) -> Result<(), Unknown> {
        self.depth -= 1;
        self.take(bracket)
    }

    fn list<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unknown> {
        self.begin(b'[')?;
        let value = visitor.visit_seq(Parts::of(self))?;
        self.end(b']')?;
        Ok(value)
    }

    fn object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unknown> {
        self.begin(b'{')?;
        let value = visitor.visit_map(Parts::of(self))?;
        self.end(b'}')?;
        Ok(value)
    }
}

/// Methods for values that begin with one of some bytes. Visitors that take other values too must not get them here, since
/// serde_json does not give them any.
macro_rules! values {
    ($($read:ident, $first:pat => $($method:ident)*;)*) => {
        $($(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
            match self.peek() {
                Some($first) => self.$read(visitor),
                _ => Err(Unknown),
            }
        })*)*
    };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Unknown;

    values! {
        number, b'-' | b'0'..=b'9' => deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8
            deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64;
        string, b'"' => deserialize_char deserialize_str deserialize_string deserialize_identifier;
        list, b'[' => deserialize_seq;
        object, b'{' => deserialize_map;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        match self.peek().ok_or(Unknown)? {
            b'"' => self.string(visitor),
            b'{' => self.object(visitor),
            b'[' => self.list(visitor),
            b't' => {
                self.literal("true")?;
                visitor.visit_bool(true)
            }
            b'f' => {
                self.literal("false")?;
                visitor.visit_bool(false)
            }
            b'n' => {
                self.literal("null")?;
                visitor.visit_unit()
            }
            _ => self.number(visitor),
        }
    }
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        match self.peek() {
            Some(b't' | b'f') => self.deserialize_any(visitor),
            _ => Err(Unknown),
        }
    }
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        self.literal("null")?;
        visitor.visit_unit()
    }
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        self.deserialize_unit(visitor)
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        if self.peek() == Some(b'n') {
            self.literal("null")?;
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        if name == FieldsV1::NAME && self.peek() == Some(b'{') {
            return visitor.visit_borrowed_str(self.text_of_value()?);
        }
        if !name.starts_with(OWN_NAME) {
            return visitor.visit_newtype_struct(self);
        }
        let mut deserializer = serde_json::Deserializer::from_str(self.text_of_value()?);
        let value = deserializer.deserialize_newtype_struct(name, visitor);
        value.map_err(|_| Unknown)
    }
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Unknown> {
        self.deserialize_seq(visitor)
    }
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        self.deserialize_seq(visitor)
    }
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        self.deserialize_map(visitor)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        if self.peek() == Some(b'"') {
            let name = self.plain_string()?.ok_or(Unknown)?;
            return visitor.visit_enum(BorrowedStrDeserializer::new(name));
        }
        self.begin(b'{')?;
        let value = visitor.visit_enum(Variant(self))?;
        self.end(b'}')?;
        Ok(value)
    }
    fn deserialize_bytes<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Unknown> {
        Err(Unknown)
    }
    fn deserialize_byte_buf<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Unknown> {
        Err(Unknown)
    }
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        self.text_of_value()?;
        visitor.visit_unit()
    }
}

/// The elements of a list, or the members of an object.
struct Parts<'r, 'de> {
    reader: &'r mut Reader<'de>,
    is_first: bool,
}

impl<'r, 'de> Parts<'r, 'de> {
    fn of(reader: &'r mut Reader<'de>) -> Self {
        Self {
            reader,
            is_first: true,
        }
    }

    /// Whether there is another part; takes the comma before it.
    fn has_next(&mut self, end: u8) -> Result<bool, Unknown> {
        if std::mem::take(&mut self.is_first) {
            Ok(self.reader.peek() != Some(end))
        } else {
            Ok(self.reader.takes(b','))
        }
    }
}

impl<'de> SeqAccess<'de> for Parts<'_, 'de> {
    type Error = Unknown;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Unknown> {
        if !self.has_next(b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl<'de> MapAccess<'de> for Parts<'_, 'de> {
    type Error = Unknown;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Unknown> {
        if !self.has_next(b'}')? {
            return Ok(None);
        }
        seed.deserialize(Key(self.reader)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Unknown> {
        self.reader.take(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

/// The name of a member: a string, also where a type has keys of other types.
struct Key<'r, 'de>(&'r mut Reader<'de>);

macro_rules! no_keys {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Unknown> {
            Err(Unknown)
        })*
    };
}

impl<'de> Deserializer<'de> for Key<'_, 'de> {
    type Error = Unknown;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unknown> {
        self.0.string(visitor)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        let key = self.0.plain_string()?.ok_or(Unknown)?;
        let key: BorrowedStrDeserializer<'_, Unknown> = BorrowedStrDeserializer::new(key);
        key.deserialize_enum(name, variants, visitor)
    }
    // serde_json reads these from the text of the key.
    no_keys!(
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_bytes deserialize_byte_buf deserialize_option
    );
    forward_to_deserialize_any! {
        char str string unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// The only member of an object that is a variant with content.
struct Variant<'r, 'de>(&'r mut Reader<'de>);

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Unknown;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Unknown> {
        let name = self.0.plain_string()?.ok_or(Unknown)?;
        self.0.take(b':')?;
        let name: de::value::StrDeserializer<'_, Unknown> = name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Unknown;

    fn unit_variant(self) -> Result<(), Unknown> {
        self.0.literal("null")
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Unknown> {
        seed.deserialize(self.0)
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Unknown> {
        self.0.deserialize_seq(visitor)
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unknown> {
        self.0.deserialize_map(visitor)
    }
}

#[cfg(test)]
mod tests;
