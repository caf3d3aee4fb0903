//! The fields of types for rustc: names and types for paths, and the rules that a type supports.
//!
//! `#[apiloom::api]` implements these traits. A rule or a path that does not match a type is then a compile error at
//! the user's token, and macros do not guess types from tokens.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::Serialize;

use crate::kind::ColumnType;
use crate::types::{
    Condition, ConditionStatus, Duration, IntOrString, MicroTime, ObjectMeta, OwnerReference,
    Quantity, SortedMap, Time,
};

/// A field of an API type, as a value of zero size except for its name. It dereferences to the fields of its own type,
/// so that rustc checks `Root::FIELDS.spec.reference_type`.
pub struct Field<T: ?Sized> {
    json_name: &'static str,
    marker: PhantomData<fn() -> Box<T>>,
}

impl<T: ?Sized> Field<T> {
    /// A field with this JSON name; an empty name means a flattened field.
    pub const fn new(json_name: &'static str) -> Self {
        Self {
            json_name,
            marker: PhantomData,
        }
    }
    /// The JSON name. An associated function, since the type may have a field of any name.
    pub const fn json_name(field: &Self) -> &'static str {
        field.json_name
    }
}

impl<T: HasFields> Deref for Field<T> {
    type Target = T::Fields;
    fn deref(&self) -> &T::Fields {
        T::FIELDS
    }
}

impl<T: ?Sized> fmt::Debug for Field<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field({})", self.json_name)
    }
}

/// A type with fields that a path can refer to.
#[diagnostic::on_unimplemented(
    message = "the fields of `{Self}` are not known here",
    note = "put `#[apiloom::api]` on the type, or write `json_path = \".a.b\"` for a type of another crate"
)]
pub trait HasFields {
    /// The companion struct: one [`Field`] per field, with the field's Rust name.
    type Fields: 'static;
    /// The value of the companion struct.
    const FIELDS: &'static Self::Fields;
    /// The Rust names of all fields; `None` if they are not all known.
    const NAMES: Option<&'static [&'static str]> = None;
}

impl<T: HasFields> HasFields for Option<T> {
    type Fields = T::Fields;
    const FIELDS: &'static T::Fields = T::FIELDS;
}

impl<T: HasFields> HasFields for Box<T> {
    type Fields = T::Fields;
    const FIELDS: &'static T::Fields = T::FIELDS;
}

/// The fields of [`ObjectMeta`] that a column may refer to.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are ObjectMeta's own")]
pub struct ObjectMetaFields {
    pub name: Field<Option<String>>,
    pub generate_name: Field<Option<String>>,
    pub namespace: Field<Option<String>>,
    pub uid: Field<Option<String>>,
    pub resource_version: Field<Option<String>>,
    pub generation: Field<Option<i64>>,
    pub creation_timestamp: Field<Option<Time>>,
    pub deletion_timestamp: Field<Option<Time>>,
    pub deletion_grace_period_seconds: Field<Option<i64>>,
}

impl HasFields for ObjectMeta {
    type Fields = ObjectMetaFields;
    const FIELDS: &'static ObjectMetaFields = &ObjectMetaFields {
        name: Field::new("name"),
        generate_name: Field::new("generateName"),
        namespace: Field::new("namespace"),
        uid: Field::new("uid"),
        resource_version: Field::new("resourceVersion"),
        generation: Field::new("generation"),
        creation_timestamp: Field::new("creationTimestamp"),
        deletion_timestamp: Field::new("deletionTimestamp"),
        deletion_grace_period_seconds: Field::new("deletionGracePeriodSeconds"),
    };
}

/// The fields of [`Condition`]. Its `type` has its Rust name, and also the name of the list map key.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are Condition's own")]
pub struct ConditionFields {
    pub condition_type: Field<String>,
    pub r#type: Field<String>,
    pub status: Field<ConditionStatus>,
    pub observed_generation: Field<Option<i64>>,
    pub last_transition_time: Field<Time>,
    pub reason: Field<String>,
    pub message: Field<String>,
}

impl HasFields for Condition {
    type Fields = ConditionFields;
    const FIELDS: &'static ConditionFields = &ConditionFields {
        condition_type: Field::new("type"),
        r#type: Field::new("type"),
        status: Field::new("status"),
        observed_generation: Field::new("observedGeneration"),
        last_transition_time: Field::new("lastTransitionTime"),
        reason: Field::new("reason"),
        message: Field::new("message"),
    };
}

/// The fields of [`OwnerReference`] that can be keys of a list of them.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are OwnerReference's own")]
pub struct OwnerReferenceFields {
    pub api_version: Field<String>,
    pub kind: Field<String>,
    pub name: Field<String>,
    pub uid: Field<String>,
}

impl HasFields for OwnerReference {
    type Fields = OwnerReferenceFields;
    const FIELDS: &'static OwnerReferenceFields = &OwnerReferenceFields {
        api_version: Field::new("apiVersion"),
        kind: Field::new("kind"),
        name: Field::new("name"),
        uid: Field::new("uid"),
    };
}

/// A name in the JSON of a type.
#[derive(Clone, Copy, Debug)]
pub enum JsonName {
    /// The name of a field.
    Own(&'static str),
    /// The names of a flattened type's fields.
    Flattened(&'static [JsonName]),
}

/// A type whose JSON names are known at compile time.
pub trait JsonNames {
    /// The names, in declared order.
    const NAMES: &'static [JsonName];
}

impl<T: JsonNames> JsonNames for Option<T> {
    const NAMES: &'static [JsonName] = T::NAMES;
}

impl<T: JsonNames> JsonNames for Box<T> {
    const NAMES: &'static [JsonName] = T::NAMES;
}

/// An enum that is a string in JSON.
pub trait Values {
    /// The strings of its variants.
    const VALUES: &'static [&'static str];
}

impl Values for ConditionStatus {
    const VALUES: &'static [&'static str] = &["True", "False", "Unknown"];
}

/// A type that a printer column can show.
#[diagnostic::on_unimplemented(
    message = "a column cannot show `{Self}`",
    note = "write `with = function` for a column that is computed, or `type = \"string\"` for a type of another crate"
)]
pub trait ColumnValue {
    /// The type of the column.
    const COLUMN_TYPE: ColumnType;
}

/// A number, or an optional one; supports the rules `min`, `max`, `gt`, `lt`, `multiple_of`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number",
    label = "bounds such as `min` need a number"
)]
pub trait Number {
    /// The type of the number, without `Option` and `Box`.
    type Scalar: Serialize;
}

/// A string, or an optional one; supports the rules `len`, `bytes`, `pattern`, `format`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a string",
    label = "`len`, `bytes`, `pattern` and `format` need a string",
    note = "lists have `items = ..`, maps have `props = ..`"
)]
pub trait Text {}

/// A number of replicas, `i32` as in the kind Scale or `i64` as an integer without a format, or an optional one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of replicas",
    label = "`scale` needs an `i32`, as the kind Scale has it, or an `i64`, or an `Option` of one"
)]
pub trait Replicas {}

/// A list, or an optional one; supports the rules `items`, `list`, `unique`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list",
    label = "`items`, `list`, `unique` and `patch(merge)` need a list"
)]
pub trait List {}

/// A map, or an optional one; supports the rule `keys`.
#[diagnostic::on_unimplemented(message = "`{Self}` is not a map", label = "`keys` needs a map")]
pub trait Map {
    /// Type of the keys.
    type Key;
}

/// A list or a map; supports the rule `each`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a list nor a map",
    label = "`each` needs a list or a map"
)]
pub trait Container {
    /// Type of the list elements or map values.
    type Element;
}

/// A type whose value can be absent; supports the rules `forbidden`, `member`, `default_with`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is never absent",
    label = "`forbidden`, `member` and `default_with` need a field that can be absent",
    note = "make it an `Option`"
)]
pub trait CanBeAbsent {}

macro_rules! scalars {
    ($column:ident: $($type:ty),+) => {
        $(impl ColumnValue for $type { const COLUMN_TYPE: ColumnType = ColumnType::$column; })+
    };
}

scalars!(String: String, &'static str, char, Duration, IntOrString, Quantity);
scalars!(Integer: i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);
scalars!(Number: f32, f64);
scalars!(Boolean: bool);
scalars!(Date: Time, MicroTime);

macro_rules! numbers {
    ($($type:ty),+) => { $(impl Number for $type { type Scalar = $type; })+ };
}

numbers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64);

impl Replicas for i32 {}
impl Replicas for i64 {}
impl Text for String {}

/// `Option` and `Box` support the rules of their content.
macro_rules! forward {
    ($($wrapper:ident),+) => { $(
        impl<T: ColumnValue> ColumnValue for $wrapper<T> { const COLUMN_TYPE: ColumnType = T::COLUMN_TYPE; }
        impl<T: Number> Number for $wrapper<T> { type Scalar = T::Scalar; }
        impl<T: Replicas> Replicas for $wrapper<T> {}
        impl<T: Text> Text for $wrapper<T> {}
        impl<T: List> List for $wrapper<T> {}
        impl<T: Map> Map for $wrapper<T> { type Key = T::Key; }
        impl<T: Container> Container for $wrapper<T> { type Element = T::Element; }
    )+ };
}

forward!(Option, Box);

macro_rules! lists {
    ($($list:ident),+) => { $(
        impl<T> List for $list<T> {}
        impl<T> Container for $list<T> { type Element = T; }
        impl<T> CanBeAbsent for $list<T> {}
    )+ };
}

lists!(Vec, VecDeque, BTreeSet, HashSet);

macro_rules! maps {
    ($($map:ident),+) => { $(
        impl<K, T> Map for $map<K, T> { type Key = K; }
        impl<K, T> Container for $map<K, T> { type Element = T; }
        impl<K, T> CanBeAbsent for $map<K, T> {}
    )+ };
}

maps!(BTreeMap, HashMap, SortedMap);

impl<T> CanBeAbsent for Option<T> {}
