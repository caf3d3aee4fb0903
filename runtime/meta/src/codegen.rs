//! The items that macro expansions use. Not a public API.
//!
//! Expansions are thin calls to this module, so that bug fixes do not change generated files.

mod base64;
mod cells;
mod checked;
mod const_text;
mod convert;
mod hooks;
mod keywords;
mod kube;
mod protobuf;
mod record;
mod struct_schema;

pub use crate::convert::{ConvertError, ConvertFrom};
pub use crate::fields::{
    CanBeAbsent, ColumnValue, Container, Field, HasFields, JsonName, JsonNames, List, Map, Number,
    Replicas, Text, Values,
};
pub use crate::gvk::GroupVersionKind;
pub use crate::index_keys::{IndexKeyOf, IndexKeys};
pub use crate::kind::verbs;
pub use crate::kind::{
    ApiType, CellSource, ClusterKind, Column, ColumnType, Conversion, ConversionMethod,
    DeletionRule, Dependents, GenerationRule, GroupDef, Hooks, InMemoryConversion, JsonConversion,
    Lifecycle, NameFormat, NamespacedKind, ObjectDeletion, Place, ProtobufField, ProtobufMessage,
    ProtobufPresence, ProtobufType, Release, Resource, ResourceDef, ScalePaths, SchemaSource,
    Scope, SelectableField, SmolStr, SubresourceDef, Verb, Writes,
};
pub use crate::query::{Comparison, JsonQuery, QueryFilter, QueryStep};
pub use crate::schema::Schema;
pub use crate::types::ObjectMeta;
pub use crate::{FieldError, FieldPath, JsonPath};
pub use schemars;
pub use serde;
pub use serde_json;

pub use base64::{Base64, Bytes};
pub use cells::{ColumnValueOf, cell_with, column_type_of, column_type_with};
/// Checks that the field of an index has keys.
pub fn index_field<T: IndexKeys>(_field: &Field<T>) {}

pub use checked::{
    FieldType, FieldTypeProof, FlattenedNames, Leaf, OtherFlattenedNames, OtherLeaf, OtherTag,
    TagValues, refuse, refuse_shared_name,
};
pub use const_text::{may_be_among, may_be_among_at};
pub use convert::{
    Conv, ConvertVia, FieldNames, FieldNamesOther, MissingFields, ResultOf, ReturnValue,
    ReturnValueVia, TypeOf, ValidIf, convert_document, convert_error, convert_json,
    is_of_other_group, is_other_version, never, resource_of_other_group, type_of,
};
pub use hooks::{
    HooksFn, Probe, ProbeForeign, ReturnsErrors, Tree, computed_default, has_form, typed_check,
};
pub use keywords::{Bound, BoundOther, Keyword, apply_keywords, keyword_value};
pub use kube::{deserialize_with_metadata, serialize_with_metadata};
pub use protobuf::{
    ProbeForeignProtobuf, flattened_problem, protobuf_message, protobuf_problem, protobuf_type,
};
pub use record::{
    FieldVisitor, Record, deserialize_record, read_required, read_value, serialize_record,
};
pub use struct_schema::{FieldSchema, Presence, StructSchema, struct_schema};

pub use crate::__kube_view as kube_view;
pub use crate::testing::check_conversion;

/// A path of JSON names without the empty names of flattened fields.
pub fn path(names: &[&'static str]) -> JsonPath {
    JsonPath::new(names.iter().copied().filter(|name| !name.is_empty()))
}

/// Parses a path that the user wrote as JSON names.
pub fn json_path(text: &str) -> JsonPath {
    JsonPath::new(text.strip_prefix('.').unwrap_or(text).split('.'))
}

/// The JSON name of a field.
pub const fn name_of<T>(field: &Field<T>) -> &'static str {
    Field::json_name(field)
}

/// The path of a number of replicas.
pub fn replicas_path<T: Replicas>(_: &Field<T>, path: JsonPath) -> JsonPath {
    path
}

/// The path of a text.
pub fn text_path<T: Text>(_: &Field<T>, path: JsonPath) -> JsonPath {
    path
}

/// Checks that a type is the `Option` that its spelling shows; an alias of another type does not compile.
pub const fn is_option<T>(_: &std::marker::PhantomData<Option<T>>) {}

/// Detects an option, a list or a map behind an alias.
#[derive(Debug)]
pub struct Shape<T>(std::marker::PhantomData<T>);

impl<T> Shape<Option<T>> {
    /// The type is an option.
    pub const HIDES_CONTAINER: bool = true;
}
impl<T> Shape<Vec<T>> {
    /// The type is a list.
    pub const HIDES_CONTAINER: bool = true;
}
impl<K, T> Shape<std::collections::BTreeMap<K, T>> {
    /// The type is a map.
    pub const HIDES_CONTAINER: bool = true;
}
impl<K, T> Shape<crate::types::SortedMap<K, T>> {
    /// The type is a map.
    pub const HIDES_CONTAINER: bool = true;
}
impl<K, T> Shape<std::collections::HashMap<K, T>> {
    /// The type is a map.
    pub const HIDES_CONTAINER: bool = true;
}

/// The constant of [`Shape`] for all other types: the inherent constants above take precedence where they exist.
pub trait ShapeOther {
    /// The type is not a hidden container.
    const HIDES_CONTAINER: bool = false;
}

impl<T> ShapeOther for Shape<T> {}

/// What `Debug` prints for the value of a sensitive field.
pub struct Redaction;

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<redacted>")
    }
}

/// Whether a list or a map is empty, so that it is omitted.
pub trait IsEmpty {
    /// Whether it has no elements.
    fn is_empty(&self) -> bool;
}

macro_rules! is_empty {
    ($($container:ident<$($parameter:ident),+>),+) => { $(
        impl<$($parameter),+> IsEmpty for std::collections::$container<$($parameter),+> {
            fn is_empty(&self) -> bool { std::collections::$container::is_empty(self) }
        }
    )+ };
}

is_empty!(BTreeMap<K, V>, HashMap<K, V>, BTreeSet<T>, HashSet<T>, VecDeque<T>);

impl<K, V> IsEmpty for crate::types::SortedMap<K, V> {
    fn is_empty(&self) -> bool {
        crate::types::SortedMap::is_empty(self)
    }
}

impl<T> IsEmpty for Vec<T> {
    fn is_empty(&self) -> bool {
        Vec::is_empty(self)
    }
}

/// Whether a list or a map is empty.
pub fn is_empty<T: IsEmpty>(value: &T) -> bool {
    value.is_empty()
}
