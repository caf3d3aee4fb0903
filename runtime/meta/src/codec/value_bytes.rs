//! A typed value as bytes that cost little, to see whether code has changed it. They are no format: the names of fields
//! are in them as addresses, so they can only be compared, within this process.
//!
//! Invariant: values with equal bytes have equal JSON, since the bytes say which calls a serialization made, in order.
//! The reverse does not hold: a map without order may make the same calls in another order.

use std::fmt;
use std::io::Write as _;

use serde::ser::{self, Error as _, Serialize};
use serde_json::Error;

/// Appends the bytes of a value.
///
/// # Errors
/// Those of its serialization.
pub(crate) fn append<T: ?Sized + Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Error> {
    value.serialize(Writer { out })
}

/// What the bytes after it are.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Tag {
    Unit,
    Some,
    Bool,
    Char,
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    U128,
    F32,
    F64,
    Text,
    Bytes,
    /// The name of a variant without content.
    Variant,
    /// The name of a variant with content.
    Inside,
    List,
    Map,
    /// The name of a struct.
    Struct,
    /// The name of a field.
    Field,
    /// The end of a list, a map or a struct.
    End,
}

/// Serializer for one value.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    fn tag(self, tag: Tag) -> Self {
        self.out.push(tag as u8);
        self
    }

    fn number<const N: usize>(self, tag: Tag, bytes: [u8; N]) -> Result<(), Error> {
        self.tag(tag).out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Bytes of any length.
    fn sized(self, tag: Tag, bytes: &[u8]) -> Result<(), Error> {
        let out = self.tag(tag).out;
        out.extend_from_slice(&bytes.len().to_ne_bytes());
        out.extend_from_slice(bytes);
        Ok(())
    }

    /// A name of the program. Equal addresses and lengths are equal names.
    fn name(self, tag: Tag, name: &'static str) -> Self {
        let mut bytes = [tag as u8; 1 + 2 * size_of::<usize>()];
        let (address, len) = bytes[1..].split_at_mut(size_of::<usize>());
        address.copy_from_slice(&name.as_ptr().addr().to_ne_bytes());
        len.copy_from_slice(&name.len().to_ne_bytes());
        self.out.extend_from_slice(&bytes);
        self
    }
}

macro_rules! numbers {
    ($($method:ident: $ty:ty = $tag:ident),* $(,)?) => {
        $(fn $method(self, value: $ty) -> Result<(), Error> {
            self.number(Tag::$tag, value.to_ne_bytes())
        })*
    };
}

impl ser::Serializer for Writer<'_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    numbers!(
        serialize_i8: i8 = I8, serialize_i16: i16 = I16, serialize_i32: i32 = I32, serialize_i64: i64 = I64,
        serialize_i128: i128 = I128, serialize_u8: u8 = U8, serialize_u16: u16 = U16, serialize_u32: u32 = U32,
        serialize_u64: u64 = U64, serialize_u128: u128 = U128, serialize_f32: f32 = F32, serialize_f64: f64 = F64,
    );

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.number(Tag::Bool, [value.into()])
    }
    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.number(Tag::Char, u32::from(value).to_ne_bytes())
    }
    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.sized(Tag::Text, value.as_bytes())
    }
    fn collect_str<T: ?Sized + fmt::Display>(self, value: &T) -> Result<(), Error> {
        const LEN: usize = size_of::<usize>();
        let out = self.tag(Tag::Text).out;
        let begin = out.len() + LEN;
        out.extend_from_slice(&[0; LEN]);
        write!(out, "{value}").map_err(Error::custom)?;
        let len = out.len() - begin;
        out[begin - LEN..begin].copy_from_slice(&len.to_ne_bytes());
        Ok(())
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.sized(Tag::Bytes, value)
    }
    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }
    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Error> {
        value.serialize(self.tag(Tag::Some))
    }
    fn serialize_unit(self) -> Result<(), Error> {
        self.tag(Tag::Unit);
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), Error> {
        self.name(Tag::Variant, name);
        Ok(())
    }
    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self.name(Tag::Inside, name))
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self.tag(Tag::List))
    }
    fn serialize_tuple(self, _: usize) -> Result<Self, Error> {
        Ok(self.tag(Tag::List))
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self.tag(Tag::List))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        Ok(self.name(Tag::Inside, name).tag(Tag::List))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self.tag(Tag::Map))
    }
    // Some names of structs have a meaning for serde_json.
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self.name(Tag::Struct, name))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        Ok(self.name(Tag::Inside, name).tag(Tag::Map))
    }
}

/// The parts of a list, a map or a struct.
macro_rules! parts {
    ($($kind:ident $method:ident),*) => {
        $(impl ser::$kind for Writer<'_> {
            type Ok = ();
            type Error = Error;
            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
                append(value, self.out)
            }
            fn end(self) -> Result<(), Error> {
                self.tag(Tag::End);
                Ok(())
            }
        })*
    };
}

parts!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

impl ser::SerializeMap for Writer<'_> {
    type Ok = ();
    type Error = Error;
    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Error> {
        append(key, self.out)
    }
    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        append(value, self.out)
    }
    fn end(self) -> Result<(), Error> {
        self.tag(Tag::End);
        Ok(())
    }
}

macro_rules! fields {
    ($($kind:ident),*) => {
        $(impl ser::$kind for Writer<'_> {
            type Ok = ();
            type Error = Error;
            fn serialize_field<T: ?Sized + Serialize>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                append(value, Writer { out: &mut *self.out }.name(Tag::Field, name).out)
            }
            fn end(self) -> Result<(), Error> {
                self.tag(Tag::End);
                Ok(())
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use serde::Serialize;
    use serde_json::value::RawValue;

    use super::*;

    fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
        let mut out = Vec::new();
        append(value, &mut out).unwrap();
        out
    }

    /// The bytes of each value are its own, and those of a clone are the same.
    fn differ<T: Serialize + Clone + Debug>(values: &[T]) {
        for (at, value) in values.iter().enumerate() {
            for (other_at, other) in values.iter().enumerate() {
                let is_same = bytes(value) == bytes(&other.clone());
                assert_eq!(is_same, at == other_at, "{value:?} and {other:?}");
            }
        }
    }

    #[derive(Clone, Debug, Serialize)]
    #[serde(untagged)]
    enum Any {
        Bool(bool),
        Small(u8),
        Large(u64),
        Float(f64),
        Text(String),
        Named(Named),
        A { a: u8 },
        B { b: u8 },
        List(Vec<Any>),
        Pair(u8, u8),
        Map(BTreeMap<String, Any>),
        Maybe(Option<Vec<Any>>),
        Raw(Box<RawValue>),
        Unit,
    }

    #[derive(Clone, Debug, Serialize)]
    enum Named {
        Unit,
        Other,
        New(u8),
        Tuple(u8, u8),
        Fields { a: u8 },
        Inside(Box<Named>),
    }

    #[derive(Clone, Debug, Serialize)]
    struct Fields {
        #[serde(skip_serializing_if = "Option::is_none")]
        first: Option<u8>,
        #[serde(skip_serializing_if = "Option::is_none")]
        second: Option<u8>,
        list: Vec<Vec<u8>>,
    }

    #[test]
    fn values_that_differ_have_other_bytes() {
        let text = |text: &str| Any::Text(text.to_owned());
        let map = |pairs: &[(&str, Any)]| {
            Any::Map(
                pairs
                    .iter()
                    .map(|(k, v)| ((*k).to_owned(), v.clone()))
                    .collect(),
            )
        };
        differ(&[
            Any::Unit,
            Any::Bool(false),
            Any::Bool(true),
            Any::Small(0),
            Any::Small(1),
            Any::Large(1),
            Any::Large(1 << 40),
            Any::Float(1.0),
            Any::Float(-1.5),
            text(""),
            text("1"),
            text("a"),
            text("ab"),
            Any::A { a: 1 },
            Any::B { b: 1 },
            Any::List(vec![]),
            Any::List(vec![text("a"), text("b")]),
            Any::List(vec![text("ab")]),
            Any::List(vec![Any::List(vec![text("a")]), text("b")]),
            Any::List(vec![Any::List(vec![text("a"), text("b")])]),
            Any::List(vec![Any::List(vec![]), Any::List(vec![])]),
            Any::List(vec![Any::List(vec![Any::List(vec![])])]),
            Any::Pair(1, 2),
            Any::Pair(2, 1),
            map(&[]),
            map(&[("a", text("b"))]),
            map(&[("a", text("b")), ("c", text("d"))]),
            map(&[("a", map(&[("c", text("d"))]))]),
            Any::Maybe(Some(vec![])),
            Any::Raw(RawValue::from_string("[1]".to_owned()).unwrap()),
            Any::Raw(RawValue::from_string("[2]".to_owned()).unwrap()),
        ]);
        let named = [
            Named::Unit,
            Named::Other,
            Named::New(1),
            Named::Tuple(1, 2),
            Named::Fields { a: 1 },
            Named::Inside(Box::new(Named::Unit)),
            Named::Inside(Box::new(Named::New(1))),
        ];
        differ(&named.map(Any::Named));
    }

    #[test]
    fn fields_that_are_not_written_count() {
        let fields = |first, second, list| Fields {
            first,
            second,
            list,
        };
        differ(&[
            fields(None, None, vec![]),
            fields(Some(1), None, vec![]),
            fields(None, Some(1), vec![]),
            fields(Some(1), Some(1), vec![]),
            fields(None, None, vec![vec![1], vec![]]),
            fields(None, None, vec![vec![], vec![1]]),
        ]);
    }

    #[test]
    fn text_that_is_formatted_is_text() {
        struct Shown(&'static str);
        impl Serialize for Shown {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self.0)
            }
        }
        for text in ["", "a", "longer than a word"] {
            assert_eq!(bytes(&Shown(text)), bytes(&text));
        }
    }

    #[test]
    fn errors_of_a_value_are_returned() {
        struct Odd;
        impl Serialize for Odd {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(ser::Error::custom("odd"))
            }
        }
        assert!(append(&vec![Odd], &mut Vec::new()).is_err());
    }
}
