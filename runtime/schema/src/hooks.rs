//! Checks and computed defaults in Rust.

use serde_json::Value;

use crate::field::{FieldError, FieldPath};

/// Rules of a type that a schema cannot express: custom checks, and defaults computed from the parent.
///
/// Implemented by `#[apiloom::api]`; the tree corresponds to that of the fields, and the schema engine runs the hooks
/// during its walk.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    /// Hooks of the fields, by JSON name.
    pub fields: Vec<(&'static str, Hooks)>,
    /// Hooks of all list elements or map values.
    pub items: Option<Box<Hooks>>,
    /// Checks of the value itself.
    pub checks: Vec<CheckFn>,
    /// Functions for absent fields of this value, which compute a default from it.
    pub defaults: Vec<(&'static str, DefaultFn)>,
}

/// A user's check of one value. Called after the schema has validated the value.
pub type CheckFn = fn(&Value, &FieldPath) -> Vec<FieldError>;

/// Computes a default from the parent value; `None` leaves the field absent.
pub type DefaultFn = fn(&Value) -> Option<Value>;

impl Hooks {
    /// Whether there are no hooks here or below.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
            && self.items.is_none()
            && self.checks.is_empty()
            && self.defaults.is_empty()
    }
}
