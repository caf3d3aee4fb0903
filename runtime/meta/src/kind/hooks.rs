//! Checks and computed defaults that are written in Rust.

use serde_json::Value;

use crate::field::{FieldError, FieldPath};

/// Typed rules of a type that a schema cannot say: custom checks and defaults computed from the parent.
///
/// `#[apiloom::api]` implements it; the tree follows the fields, and the schema engine runs it in its one walk.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    /// Hooks of the fields, by JSON name.
    pub fields: Vec<(&'static str, Hooks)>,
    /// Hooks of every list element or map value.
    pub items: Option<Box<Hooks>>,
    /// Checks of the value itself.
    pub checks: Vec<CheckFn>,
    /// Defaults for fields of this value, computed from it while they are absent.
    pub defaults: Vec<(&'static str, DefaultFn)>,
}

/// A user's check of one value. Runs after the schema found the value well-formed.
pub type CheckFn = fn(&Value, &FieldPath) -> Vec<FieldError>;

/// A default computed from the parent value; `None` sets nothing.
pub type DefaultFn = fn(&Value) -> Option<Value>;

impl Hooks {
    /// Whether there is nothing to run here or below.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
            && self.items.is_none()
            && self.checks.is_empty()
            && self.defaults.is_empty()
    }
}
