//! Label and field selectors, as query strings and `LabelSelector` spell them.

pub mod field;
pub mod label;

pub use field::{FieldMatcher, FieldRequirement, FieldSelector};
pub use label::{LabelMatcher, LabelSelector as LabelQuery, Labels};
