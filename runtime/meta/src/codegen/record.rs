//! Serialization of structs with named fields. Expansions list the fields; what is done with them is written here once,
//! and compiled once for each type of a field and each format, not for each field.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use super::IsEmpty;

/// A struct with named fields that has the JSON form of its declaration.
pub trait Record: Sized {
    /// The name of the type.
    const NAME: &'static str;
    /// The JSON names of the fields.
    const FIELDS: &'static [&'static str];
    /// The JSON names of the fields that must be present.
    const REQUIRED: &'static [&'static str];
    /// The fields that were read so far.
    type Slots;

    /// Hands each field to the visitor, in declared order.
    fn visit<V: FieldVisitor>(&self, visitor: &mut V);
    /// No fields read yet.
    fn slots() -> Self::Slots;
    /// Reads the value of the field at this index.
    ///
    /// # Errors
    /// Those of the value.
    fn read<'de, A: MapAccess<'de>>(
        slots: &mut Self::Slots,
        field: usize,
        map: &mut A,
    ) -> Result<(), A::Error>;
    /// The struct, if no required field is missing.
    fn finish(slots: Self::Slots) -> Option<Self>;
}

/// Receives the fields of a [`Record`].
pub trait FieldVisitor {
    /// A field that is always written.
    fn field<T: Serialize>(&mut self, name: &'static str, value: &T);
    /// A field that is omitted without a value.
    fn option<T: Serialize>(&mut self, name: &'static str, value: &Option<T>);
    /// A list or a map, which is omitted without elements.
    fn container<T: Serialize + IsEmpty>(&mut self, name: &'static str, value: &T);
}

/// Counts the fields that are written.
struct Count(usize);

impl FieldVisitor for Count {
    fn field<T: Serialize>(&mut self, _: &'static str, _: &T) {
        self.0 += 1;
    }
    fn option<T: Serialize>(&mut self, _: &'static str, value: &Option<T>) {
        self.0 += usize::from(value.is_some());
    }
    fn container<T: Serialize + IsEmpty>(&mut self, _: &'static str, value: &T) {
        self.0 += usize::from(!value.is_empty());
    }
}

/// Writes fields; after an error it writes no more.
struct Writer<S: SerializeStruct> {
    out: S,
    result: Result<(), S::Error>,
}

impl<S: SerializeStruct> FieldVisitor for Writer<S> {
    fn field<T: Serialize>(&mut self, name: &'static str, value: &T) {
        if self.result.is_ok() {
            self.result = self.out.serialize_field(name, value);
        }
    }
    fn option<T: Serialize>(&mut self, name: &'static str, value: &Option<T>) {
        if value.is_some() {
            self.field(name, value);
        } else if self.result.is_ok() {
            self.result = self.out.skip_field(name);
        }
    }
    fn container<T: Serialize + IsEmpty>(&mut self, name: &'static str, value: &T) {
        if !value.is_empty() {
            self.field(name, value);
        } else if self.result.is_ok() {
            self.result = self.out.skip_field(name);
        }
    }
}

/// Serializes a struct.
///
/// # Errors
/// Those of the serializer and of the fields.
pub fn serialize_record<R: Record, S: Serializer>(
    record: &R,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    // Formats with a length in front need the exact one.
    let mut count = Count(0);
    record.visit(&mut count);
    let mut writer = Writer {
        out: serializer.serialize_struct(R::NAME, count.0)?,
        result: Ok(()),
    };
    record.visit(&mut writer);
    writer.result?;
    writer.out.end()
}

/// Deserializes a struct: unknown fields are ignored, duplicate ones and missing required ones are errors.
///
/// # Errors
/// Those of the deserializer and of the fields.
pub fn deserialize_record<'de, R: Record, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<R, D::Error> {
    deserializer.deserialize_struct(R::NAME, R::FIELDS, RecordVisitor(PhantomData))
}

struct RecordVisitor<R>(PhantomData<R>);

impl<'de, R: Record> Visitor<'de> for RecordVisitor<R> {
    type Value = R;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "struct {}", R::NAME)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<R, A::Error> {
        let mut slots = R::slots();
        let mut read = |field, map: &mut A| R::read(&mut slots, field, map);
        read_fields(&mut map, R::FIELDS, R::REQUIRED, &mut read)?;
        R::finish(slots).ok_or_else(|| A::Error::custom("a required field is missing"))
    }
}

/// Reads the value of the field at an index.
type ReadField<'a, A, E> = &'a mut dyn FnMut(usize, &mut A) -> Result<(), E>;

/// Reads all fields. Not generic over the struct, so that it is compiled once for each format.
fn read_fields<'de, A: MapAccess<'de>>(
    map: &mut A,
    names: &'static [&'static str],
    required: &[&'static str],
    read: ReadField<'_, A, A::Error>,
) -> Result<(), A::Error> {
    let mut seen = FieldSet::default();
    let mut next = 0;
    while let Some(field) = map.next_key_seed(FieldName { names, next })? {
        let Some(field) = field else {
            map.next_value::<IgnoredAny>()?;
            continue;
        };
        if !seen.insert(field) {
            return Err(A::Error::duplicate_field(names[field]));
        }
        read(field, map)?;
        next = field + 1;
    }
    let mut fields = names.iter().enumerate();
    let missing = fields.find(|(field, name)| !seen.contains(*field) && required.contains(name));
    match missing {
        Some((_, name)) => Err(A::Error::missing_field(name)),
        None => Ok(()),
    }
}

/// The set of the fields that were read.
#[derive(Default)]
struct FieldSet {
    /// Nearly all structs have fewer fields than this has bits.
    first: u64,
    others: Vec<usize>,
}

impl FieldSet {
    fn contains(&self, field: usize) -> bool {
        if field < 64 {
            self.first & (1 << field) != 0
        } else {
            self.others.contains(&field)
        }
    }

    /// Adds a field; false if it was there.
    fn insert(&mut self, field: usize) -> bool {
        if self.contains(field) {
            return false;
        }
        if field < 64 {
            self.first |= 1 << field;
        } else {
            self.others.push(field);
        }
        true
    }
}

/// The index of a field by its name; `None` for unknown names.
struct FieldName {
    names: &'static [&'static str],
    /// Most documents have their fields in declared order: this one comes next then, or one behind it.
    next: usize,
}

impl FieldName {
    fn find(&self, name: &[u8]) -> Option<usize> {
        let (before, after) = self.names.split_at(self.next.min(self.names.len()));
        let is_name = |known: &&str| known.as_bytes() == name;
        let behind = after.iter().position(is_name);
        behind
            .map(|at| before.len() + at)
            .or_else(|| before.iter().position(is_name))
    }
}

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = Option<usize>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldName {
    type Value = Option<usize>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("field identifier")
    }
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        let index = usize::try_from(value).ok();
        Ok(index.filter(|index| *index < self.names.len()))
    }
    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(self.find(value.as_bytes()))
    }
    fn visit_bytes<E>(self, value: &[u8]) -> Result<Self::Value, E> {
        Ok(self.find(value))
    }
}

/// Reads the value of a field that is absent without one.
///
/// # Errors
/// Those of the value.
pub fn read_value<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    slot: &mut T,
    map: &mut A,
) -> Result<(), A::Error> {
    *slot = map.next_value()?;
    Ok(())
}

/// Reads the value of a required field.
///
/// # Errors
/// Those of the value.
pub fn read_required<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    slot: &mut Option<T>,
    map: &mut A,
) -> Result<(), A::Error> {
    *slot = Some(map.next_value()?);
    Ok(())
}
