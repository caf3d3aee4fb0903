//! Patterns that are literals: compiled when they are first used, and kept.

use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::OnceLock;

use apiloom_meta::schema::go_pattern_problem;
use regex::Regex;

use crate::ast::{Expr, Kind, Literal};
use crate::walk::for_each;

/// Maximum number of patterns that are kept for one schema; others are compiled whenever a rule runs.
const MAX_KEPT: usize = 256;

/// The patterns of an expression, by their text.
pub(crate) type Patterns = HashMap<Box<str>, OnceLock<Regex>>;

/// A compiled pattern.
pub(crate) enum Pattern<'a> {
    Kept(&'a Regex),
    Recent(Rc<Regex>),
}

impl Deref for Pattern<'_> {
    type Target = Regex;
    fn deref(&self) -> &Regex {
        match self {
            Self::Kept(found) => found,
            Self::Recent(found) => found,
        }
    }
}

/// Checks the syntax of a pattern.
///
/// # Errors
/// The text of the parser of Go's package `regexp`.
pub(crate) fn check(pattern: &str) -> Result<(), String> {
    match go_pattern_problem(pattern) {
        Some(text) => Err(format!("error parsing regexp: {text}")),
        None => Ok(()),
    }
}

/// The literal patterns of an expression. `kept` is the number of those of the schema so far.
pub(crate) fn literals(expr: &Expr, kept: &mut usize) -> Patterns {
    let mut found = Patterns::new();
    for_each(expr, &mut |part| {
        let Kind::Call(call) = &part.kind else { return };
        if !matches!(&*call.name, "matches" | "find" | "findAll") {
            return;
        }
        for arg in &call.args {
            if let Kind::Literal(Literal::Text(text)) = &arg.kind
                && *kept < MAX_KEPT
                && !found.contains_key(&**text)
            {
                found.insert((&**text).into(), OnceLock::new());
                *kept += 1;
            }
        }
    });
    found
}
