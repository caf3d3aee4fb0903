//! Protobuf messages of a kind, as data: the numbers, names and types of their fields.
//!
//! `#[api(proto = N)]` on fields makes these descriptions, from which the server reads and writes Protobuf bodies and the
//! generator writes `.proto` files. The encoding is that of Go's `protobuf:` tags and `generated.proto` files.

mod flattened;
mod json_schema;
mod messages;
mod normal;

pub use json_schema::JSON_SCHEMA_PROPS;
pub use messages::*;

/// A Protobuf message, and its conversion to a JSON object and back.
///
/// A message may contain itself: the type of a field names its message by a function.
#[derive(Debug)]
pub struct ProtobufMessage {
    /// The package of a message that Kubernetes defines, or of a kind that declares one; `None` for that of the kind which
    /// uses the message.
    pub package: Option<&'static str>,
    /// The name of the message, in `.proto` files and error messages.
    pub name: &'static str,
    /// The known fields, each with another number; others are skipped.
    pub fields: &'static [ProtobufField],
    /// Numbers that fields of older releases had, which no field may have.
    pub reserved: &'static [u32],
    /// Names that fields of older releases had, which no field may have.
    pub reserved_names: &'static [&'static str],
}

impl ProtobufMessage {
    /// A message without fields.
    pub const fn new(name: &'static str) -> Self {
        Self {
            package: None,
            name,
            fields: &[],
            reserved: &[],
            reserved_names: &[],
        }
    }

    /// Sets the fields.
    #[must_use]
    pub const fn fields(self, fields: &'static [ProtobufField]) -> Self {
        Self { fields, ..self }
    }
}

/// A field of a message.
#[derive(Debug)]
pub struct ProtobufField {
    /// The number of the field.
    pub number: u32,
    /// The name of the field in JSON, unless it is flattened, and in `.proto` files and error messages.
    pub name: &'static str,
    /// The type of the field.
    pub value: ProtobufType,
    /// When the field is present in JSON.
    pub presence: ProtobufPresence,
}

impl ProtobufField {
    /// A field that is omitted from JSON if it is empty.
    pub const fn new(number: u32, name: &'static str, value: ProtobufType) -> Self {
        Self {
            number,
            name,
            value,
            presence: ProtobufPresence::NotEmpty,
        }
    }

    /// Sets [`ProtobufPresence::Sent`].
    #[must_use]
    pub const fn sent(self) -> Self {
        let presence = ProtobufPresence::Sent;
        Self { presence, ..self }
    }

    /// Sets [`ProtobufPresence::Flattened`]; the type is a message.
    #[must_use]
    pub const fn flattened(self) -> Self {
        let presence = ProtobufPresence::Flattened;
        Self { presence, ..self }
    }

    /// Sets [`ProtobufPresence::Always`].
    #[must_use]
    pub const fn always(self) -> Self {
        let presence = ProtobufPresence::Always;
        Self { presence, ..self }
    }
}

/// The type of a field, of the items of a list, or of the values of a map.
#[derive(Clone, Copy, Debug)]
pub enum ProtobufType {
    /// `string`.
    Text,
    /// `bool`.
    Boolean,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// `uint32`.
    Uint32,
    /// `uint64`.
    Uint64,
    /// `float`.
    Float,
    /// `double`.
    Double,
    /// `bytes`, base64 in JSON.
    Bytes,
    /// `meta/v1` `Time`: a message with the seconds since 1970, `seconds = 1`, and `nanos = 2`, which is ignored. RFC 3339
    /// in JSON. Go sends the zero time as a message without fields, which is null in JSON.
    Time,
    /// `meta/v1` `MicroTime`: as [`Time`](Self::Time), and `nanos` are read, to the microsecond.
    MicroTime,
    /// `meta/v1` `Duration`: a message with the nanoseconds, `duration = 1`, an `int64`. Text such as `1m30s` in JSON.
    Duration,
    /// `Quantity`: a message with the text, `string = 1`.
    Quantity,
    /// `IntOrString`: a message with `type = 1`, 0 for a number and 1 for text, `intVal = 2`, an `int32`, and `strVal = 3`.
    IntOrString,
    /// `meta/v1` `FieldsV1`: a message with a JSON document, `Raw = 1`, of type `bytes`.
    FieldsV1,
    /// `RawExtension`: a message with a JSON document, `raw = 1`, of type `bytes`.
    RawExtension,
    /// `JSON` of definitions: as [`RawExtension`](Self::RawExtension), under its own name; in a list it may be null, a message
    /// without fields.
    Json,
    /// Another message.
    Message(fn() -> &'static ProtobufMessage),
    /// A message that stands for one value, told by its JSON: an object, a list or a boolean is the field of that type, of which
    /// there is at most one each. Beside an object the boolean is true. Read back, a list with items goes before an object,
    /// and an object before a boolean; if there is none, a missing boolean is false, and all else null.
    ByShape(fn() -> &'static ProtobufMessage),
    /// As the type of a field: `repeated`; numbers are read packed and unpacked, and written unpacked, as Go does. In a list
    /// or a map it is a message with the list as its only field, `items = 1`.
    List(&'static ProtobufType),
    /// As the type of a field: `map<string, ..>`. In a list or a map it is a message with the map as its only field,
    /// `items = 1`.
    Map(&'static ProtobufType),
}

/// When a field is present in JSON that is made of a message.
///
/// Go writes fields into Protobuf that it omits from JSON: all that are neither lists, maps nor pointers, also empty ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtobufPresence {
    /// If it is not empty, that is an empty text, list or object, zero, or false: Go's `omitempty`.
    NotEmpty,
    /// If it was sent, also if it is empty: Go's `omitempty` of a pointer.
    Sent,
    /// Always: a Go field without `omitempty`. What was not sent is empty.
    Always,
    /// Never: the fields of its message are members of the object around it. It is a message of its own in Protobuf alone, as an
    /// embedded struct in Go.
    Flattened,
}

/// The shape of the value that a message of [`ProtobufType::ByShape`] stands for, in the order in which fields go before others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// `true` or `false`.
    Boolean,
    /// An object.
    Object,
    /// A list.
    List,
}

impl Shape {
    /// The shape of a JSON value, by its first byte.
    pub const fn of_json(first: u8) -> Option<Self> {
        match first {
            b't' | b'f' => Some(Self::Boolean),
            b'{' => Some(Self::Object),
            b'[' => Some(Self::List),
            _ => None,
        }
    }

    /// The shape of values of a type.
    pub const fn of_type(of: ProtobufType) -> Option<Self> {
        match of {
            ProtobufType::Boolean => Some(Self::Boolean),
            ProtobufType::Message(_) => Some(Self::Object),
            ProtobufType::List(_) => Some(Self::List),
            _ => None,
        }
    }
}

impl ProtobufMessage {
    /// The field for values of a shape.
    pub fn field_of(&self, shape: Shape) -> Option<&ProtobufField> {
        let mut fields = self.fields.iter();
        fields.find(|field| Shape::of_type(field.value) == Some(shape))
    }
}
