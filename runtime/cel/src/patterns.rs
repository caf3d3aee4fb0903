//! The patterns that are literals: they are parsed with their rule and keep their program.

use std::collections::HashMap;

use apiloom_schema::regexp::Pattern;

/// Maximum memory of the programs of literals that are kept for one schema, in bytes; others are compiled whenever a rule
/// runs.
pub(crate) const MAX_KEPT: usize = 4 * 1024 * 1024;

/// The patterns of an expression, by their text.
pub(crate) type Patterns = HashMap<Box<str>, Pattern>;

/// Checks the syntax of a pattern.
///
/// # Errors
/// The text of the parser of Go's package `regexp`.
pub(crate) fn check(pattern: &str) -> Result<(), String> {
    match Pattern::new(pattern) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
