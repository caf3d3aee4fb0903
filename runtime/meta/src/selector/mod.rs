//! Label and field selectors, as query strings and `LabelSelector` spell them.

pub mod field;
pub mod label;

pub use field::{FieldRequirement, FieldSelector};
pub use label::LabelSelector as LabelQuery;
