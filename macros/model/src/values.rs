//! Values of arguments that are more than a literal.

use crate::{Code, Name, Spanned};

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
    Json(Spanned<String>),
}
