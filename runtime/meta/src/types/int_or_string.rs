//! A value that is a number or a string, such as a port or a percentage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Either an integer or a string.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum IntOrString {
    /// A number.
    Int(i32),
    /// A string, often a percentage.
    String(String),
}
