//! Regular expressions of schemas, with the semantics of Kubernetes.
//!
//! Schemas with equal patterns share the expression, which is compiled when it is first used.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};

use regex::Regex;

/// A pattern with its expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    text: String,
    expression: Arc<Expression>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    /// The pattern of a schema.
    ///
    /// # Errors
    /// The reason if the text is not a regular expression.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        Ok(Self {
            text: text.to_owned(),
            expression: Expressions::get(text)?,
        })
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a text matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.expression
            .regex()
            .is_some_and(|regex| regex.is_match(text))
    }
}

/// A regular expression, compiled when it is first used.
#[derive(Debug)]
struct Expression {
    /// The pattern with Go's character classes.
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Expression {
    /// A validated expression.
    fn new(pattern: &str) -> Result<Self, String> {
        let text = with_ascii_classes(pattern);
        let compiled = OnceLock::new();
        // Only an expression that is long or has repetitions can exceed the size limit of its program; it is compiled
        // now.
        let may_be_too_large = text.len() > LARGE_BYTES || text.contains('{');
        if may_be_too_large || regex_syntax::parse(&text).is_err() {
            let regex = Regex::new(&text).map_err(|error| {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default();
                reason.trim_start_matches("error: ").to_owned()
            })?;
            // Cannot fail: the cell is empty.
            let _ = compiled.set(Some(regex));
        }
        Ok(Self { text, compiled })
    }

    /// The compiled expression; never `None`, since it was validated.
    fn regex(&self) -> Option<&Regex> {
        self.compiled
            .get_or_init(|| Regex::new(&self.text).ok())
            .as_ref()
    }
}

/// Minimum length of a long expression: a character class has a program of at most about 20 KiB, and the limit is 10
/// MiB.
const LARGE_BYTES: usize = 512;

/// The expressions of all schemas in the process, by pattern.
#[derive(Default)]
struct Expressions {
    known: HashMap<String, Weak<Expression>>,
    /// Number of entries at which those of dropped schemas are removed.
    full: usize,
}

impl Expressions {
    /// The expression of a pattern, from the table or new.
    fn get(pattern: &str) -> Result<Arc<Expression>, String> {
        static ALL: LazyLock<Mutex<Expressions>> = LazyLock::new(Mutex::default);
        // Entries are inserted in one step, so the table is consistent after a panic.
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.known.get(pattern).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let expression = Arc::new(Expression::new(pattern)?);
        if all.known.len() >= all.full {
            all.known.retain(|_, known| known.strong_count() > 0);
            all.full = 2 * all.known.len() + 64;
        }
        let known = Arc::downgrade(&expression);
        all.known.insert(pattern.to_owned(), known);
        Ok(expression)
    }
}

/// A pattern whose `\d`, `\w`, `\s` and `\b` match ASCII only, as in Go: a name that must match `^\w+$` has no
/// umlauts. `\B` is unchanged, since its ASCII form could split a character.
pub fn with_ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            // Nested in another class, a class is a part of it.
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('s') => out.push_str(r"[\t\n\f\r ]"),
            Some('S') => out.push_str(r"[^\t\n\f\r ]"),
            Some('b') if !in_class => out.push_str(r"(?-u:\b)"),
            other => {
                out.push('\\');
                out.extend(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_share_the_expression_of_a_pattern() {
        let [first, second] = ["^shared[0-9]$"; 2].map(|text| Pattern::new(text).unwrap());
        assert!(Arc::ptr_eq(&first.expression, &second.expression));
        assert!(first.expression.compiled.get().is_none(), "not yet used");
        assert!(second.is_match("shared1") && !second.is_match("shared"));
        assert!(first.expression.compiled.get().is_some());
    }

    #[test]
    fn what_cannot_be_compiled_is_refused_at_once() {
        for (text, reason) in [
            ("(", "unclosed group"),
            (
                r"((\w{1000}){1000}){1000}",
                "Compiled regex exceeds size limit of 10485760 bytes.",
            ),
        ] {
            assert_eq!(Pattern::new(text).unwrap_err(), reason);
        }
    }

    #[test]
    fn classes_know_ascii_alone() {
        for (pattern, good, bad) in [
            (r"^\w+$", "aZ_9", "é"),
            (r"^\d+$", "09", "\u{661}"),
            (r"^\s$", " ", "\u{a0}"),
            (r"^\S$", "\u{a0}", "\t"),
            (r"^\W$", "é", "a"),
            (r"^\D$", "\u{661}", "1"),
            (r"^[\w.-]+$", "a.b-c", "é"),
            (r"^[^\d]$", "\u{661}", "1"),
            (r"^[\D]$", "a", "1"),
            (r"^é\b.$", "éa", "é "),
            (r"^\\d\[\d\]$", r"\d[1]", "1[1]"),
            (r"^\p{Lu}$", "É", "é"),
        ] {
            let regex = Regex::new(&with_ascii_classes(pattern)).expect(pattern);
            assert!(regex.is_match(good), "{pattern} {good:?}");
            assert!(!regex.is_match(bad), "{pattern} {bad:?}");
        }
    }
}
