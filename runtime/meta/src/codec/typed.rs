//! Encodes typed values as `Encoder::object` encodes the same document: Go's escapes and numbers, fields in the order of
//! the schema, maps sorted by key. A value that cannot be encoded so is an error.

use std::borrow::Cow;

use apiloom_schema::tree::Node;
use serde::ser::{self, Error as _, Serialize};
use serde_json::Error;

use super::encode::{Encoder, append_key, child};
use super::peek::member_name;

impl Encoder<'_> {
    /// Appends a typed value as [`Encoder::object`] would encode it, without some of its outermost fields; much faster than
    /// with an [`Object`](crate::object::Object) in between.
    ///
    /// # Errors
    /// For a value that cannot be encoded, such as numbers of 128 bits and raw JSON, which only a decoded document
    /// supports. Part of the output may have been appended.
    pub fn append_typed(
        self,
        value: &impl Serialize,
        without: &[&str],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        value.serialize(Writer {
            out,
            node: Some(self.0),
            without,
        })
    }
}

/// Serializer for one value.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Has the order of the fields; without a node they are sorted.
    node: Option<&'a Node>,
    without: &'a [&'a str],
}

impl<'a> Writer<'a> {
    fn plain(self, value: impl Serialize) -> Result<(), Error> {
        Encoder::append_json(&value, self.out);
        Ok(())
    }

    fn elements(self) -> Elements<'a> {
        self.out.push(b'[');
        Elements {
            out: self.out,
            node: self.node.and_then(|node| node.items.as_deref()),
            first: true,
            closing: b"]",
        }
    }

    fn members(self) -> Members<'a> {
        self.out.push(b'{');
        Members {
            begin: self.out.len(),
            out: self.out,
            node: self.node,
            without: self.without,
            written: Vec::new(),
            in_order: true,
            next: 0,
            key: 0,
            skips: false,
            closing: b"}",
        }
    }

    /// Begins an object with one member, up to its value.
    fn variant(self, name: &'static str) -> Self {
        self.out.push(b'{');
        Encoder::append_text(name, self.out);
        self.out.push(b':');
        Writer {
            node: self.node.and_then(|node| child(node, name)),
            out: self.out,
            without: &[],
        }
    }
}

macro_rules! plain {
    ($($method:ident: $ty:ty),* $(,)?) => {
        $(fn $method(self, value: $ty) -> Result<(), Error> {
            self.plain(value)
        })*
    };
}

impl<'a> ser::Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Elements<'a>;
    type SerializeTuple = Elements<'a>;
    type SerializeTupleStruct = Elements<'a>;
    type SerializeTupleVariant = Elements<'a>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Members<'a>;

    plain!(
        serialize_bool: bool, serialize_char: char, serialize_bytes: &[u8],
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_f64: f64,
    );

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        Encoder::append_text(value, self.out);
        Ok(())
    }
    fn serialize_i128(self, _: i128) -> Result<(), Error> {
        Err(Error::custom("a number of 128 bits"))
    }
    fn serialize_u128(self, _: u128) -> Result<(), Error> {
        Err(Error::custom("a number of 128 bits"))
    }
    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        // Documents have numbers of 64 bits.
        self.plain(f64::from(value))
    }
    fn serialize_none(self) -> Result<(), Error> {
        self.plain(())
    }
    fn serialize_unit(self) -> Result<(), Error> {
        self.plain(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.plain(())
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(name)
    }
    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
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
        let Writer { out, node, .. } = self.variant(name);
        let without = &[];
        value.serialize(Writer {
            out: &mut *out,
            node,
            without,
        })?;
        out.push(b'}');
        Ok(())
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'a>, Error> {
        Ok(self.elements())
    }
    fn serialize_tuple(self, _: usize) -> Result<Elements<'a>, Error> {
        Ok(self.elements())
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Elements<'a>, Error> {
        Ok(self.elements())
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Elements<'a>, Error> {
        Ok(Elements {
            closing: b"]}",
            ..self.variant(name).elements()
        })
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.members())
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'a>, Error> {
        // serde_json's own types, such as raw JSON, use private struct names.
        if name.starts_with('$') {
            Err(Error::custom("a value of serde_json's own"))
        } else {
            Ok(self.members())
        }
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        Ok(Members {
            closing: b"}}",
            ..self.variant(name).members()
        })
    }
}

/// Serializer for the elements of a list.
struct Elements<'a> {
    out: &'a mut Vec<u8>,
    node: Option<&'a Node>,
    first: bool,
    closing: &'static [u8],
}

impl Elements<'_> {
    fn element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        value.serialize(Writer {
            out: &mut *self.out,
            node: self.node,
            without: &[],
        })
    }

    fn close(self) -> Result<(), Error> {
        self.out.extend_from_slice(self.closing);
        Ok(())
    }
}

macro_rules! elements {
    ($($kind:ident $method:ident),*) => {
        $(impl ser::$kind for Elements<'_> {
            type Ok = ();
            type Error = Error;
            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }
            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
}

elements!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

/// Position of a member in the output, and its order.
#[derive(Clone, Copy)]
struct MemberSpan {
    order: usize,
    start: usize,
    end: usize,
}

/// Serializer for the members of an object.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    node: Option<&'a Node>,
    without: &'a [&'a str],
    begin: usize,
    written: Vec<MemberSpan>,
    in_order: bool,
    /// The property that is next if the fields are in the schema's order.
    next: usize,
    /// Position of the key whose value is written next.
    key: usize,
    /// Whether that value is omitted.
    skips: bool,
    closing: &'static [u8],
}

impl<'a> Members<'a> {
    /// Begins a member; its key is written next.
    fn begin(&mut self) {
        if !self.written.is_empty() {
            self.out.push(b',');
        }
        self.key = self.out.len();
    }

    /// Writes the value of the member whose key was written.
    fn value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        let name = member_name(self.out, self.key).ok_or_else(|| Error::custom("no key"))?;
        let (order, node) = self.place(&name);
        if let Some(before) = self.written.last() {
            // The last of equal keys is used; `close` removes the others.
            let ascends = order > before.order
                || (order == before.order
                    && member_name(self.out, before.start).is_some_and(|before| before < name));
            self.in_order &= ascends;
        }
        self.next = order.saturating_add(1);
        self.out.push(b':');
        value.serialize(Writer {
            out: &mut *self.out,
            node,
            without: &[],
        })?;
        self.written.push(MemberSpan {
            order,
            start: self.key,
            end: self.out.len(),
        });
        Ok(())
    }

    /// The order of a member with this name, and its node. Fields that are not properties come last, sorted.
    fn place(&self, name: &str) -> (usize, Option<&'a Node>) {
        let Some(node) = self.node else {
            return (usize::MAX, None);
        };
        let properties = &node.properties;
        // Most types declare their fields in the schema's order.
        let is_it = |at: &usize| properties[*at].name == name;
        let after = (self.next.min(properties.len())..properties.len()).find(is_it);
        match after.or_else(|| (0..properties.len()).find(is_it)) {
            Some(at) => (at, Some(&properties[at].node)),
            None => (usize::MAX, child(node, name)),
        }
    }

    fn close(self) -> Result<(), Error> {
        if !self.in_order {
            let mut sorted: Vec<(usize, Cow<'_, str>, MemberSpan)> = Vec::new();
            for written in &self.written {
                let name = member_name(self.out, written.start);
                let name = name.ok_or_else(|| Error::custom("no key"))?;
                sorted.push((written.order, name, *written));
            }
            sorted.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
            let mut members = Vec::with_capacity(self.out.len() - self.begin);
            for (at, (order, name, written)) in sorted.iter().enumerate() {
                let following = sorted.get(at + 1);
                if following.is_some_and(|(o, n, _)| (o, n) == (order, name)) {
                    continue;
                }
                if !members.is_empty() {
                    members.push(b',');
                }
                members.extend_from_slice(&self.out[written.start..written.end]);
            }
            self.out.truncate(self.begin);
            self.out.extend_from_slice(&members);
        }
        self.out.extend_from_slice(self.closing);
        Ok(())
    }
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;
    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Error> {
        let before = self.out.len();
        self.begin();
        append_key(key, self.out)?;
        let name = member_name(self.out, self.key);
        self.skips = name.is_some_and(|name| self.without.contains(&name.as_ref()));
        if self.skips {
            self.out.truncate(before);
        }
        Ok(())
    }
    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        if self.skips {
            Ok(())
        } else {
            self.value(value)
        }
    }
    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

macro_rules! fields {
    ($($kind:ident),*) => {
        $(impl ser::$kind for Members<'_> {
            type Ok = ();
            type Error = Error;
            fn serialize_field<T: ?Sized + Serialize>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                if self.without.contains(&name) {
                    return Ok(());
                }
                self.begin();
                Encoder::append_text(name, self.out);
                self.value(value)
            }
            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);
