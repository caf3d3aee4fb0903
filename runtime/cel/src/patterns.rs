//! The patterns of rules: literals are parsed with their rule and keep their program.

use std::collections::HashMap;

use apiloom_meta::regexp::Pattern;

use crate::ast::{Expr, Kind, Literal};
use crate::walk::for_each;

/// Maximum memory of the programs of literals that are kept for one schema, in bytes; others are compiled whenever a rule
/// runs.
const MAX_KEPT: usize = 4 * 1024 * 1024;

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

/// The literal patterns of an expression. `kept` is the memory of those of the schema so far, in bytes.
pub(crate) fn literals(expr: &Expr, kept: &mut usize) -> Patterns {
    let mut found = Patterns::new();
    for_each(expr, &mut |part| {
        let Kind::Call(call) = &part.kind else { return };
        if !matches!(&*call.name, "matches" | "find" | "findAll") {
            return;
        }
        for arg in &call.args {
            if let Kind::Literal(Literal::Text(text)) = &arg.kind
                && !found.contains_key(&**text)
                && let Ok(pattern) = Pattern::new(text)
                && *kept + pattern.cost() <= MAX_KEPT
            {
                *kept += pattern.cost();
                found.insert((&**text).into(), pattern);
            }
        }
    });
    found
}
