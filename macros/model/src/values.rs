//! Values of arguments that are more than a literal.

use crate::{Code, Name, SourceSpan, SpannedValue};

/// Minimum and maximum, both inclusive.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// Minimum.
    pub min: Option<Code>,
    /// Maximum.
    pub max: Option<Code>,
}

/// A reference to a value inside the object.
#[derive(Clone, Debug)]
pub enum FieldRef {
    /// `spec.reference_type`: a chain of Rust field names that rustc checks.
    Typed(Vec<Name>),
    /// `".spec.referenceType"`: JSON names that the schema checks when the server is built.
    Json(SpannedValue<String>),
}

/// The number of a field in Protobuf.
#[derive(Clone, Debug)]
pub struct ProtoNumber {
    /// The number; 0 if what is written is none.
    pub number: u32,
    /// Whether an empty value that was sent is omitted from JSON: clients in Go send it for a field that is not a pointer.
    pub omit_empty: bool,
    /// The span of the declaration.
    pub span: SourceSpan,
}

/// What `proto(..)` on a type says of its message.
#[derive(Clone, Debug, Default)]
pub struct ProtoMessage {
    /// The name; `None` for that of the type.
    pub name: Option<SpannedValue<String>>,
    /// Numbers of earlier fields, which no field may have.
    pub reserved: Vec<SpannedValue<u32>>,
    /// Names of earlier fields in JSON, which no field may have.
    pub reserved_names: Vec<SpannedValue<String>>,
    /// The span of the declaration.
    pub span: Option<SourceSpan>,
}

/// A field that field selectors may name.
#[derive(Clone, Debug)]
pub struct SelectableField {
    /// Its name in field selectors; `None` for that of its only path.
    pub name: Option<SpannedValue<String>>,
    /// Where its value is: the first of these that is not empty.
    pub paths: Vec<FieldRef>,
}
