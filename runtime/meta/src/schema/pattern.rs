//! Regular expressions of schemas, which mean what they mean to Kubernetes.
//!
//! Schemas with the same pattern share its expression, which is compiled when a text is first matched.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, Weak};

use regex::Regex;

/// A pattern with its text.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    expression: Arc<Expression>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    /// A pattern of a schema.
    ///
    /// # Errors
    /// The reason why the text is no regular expression.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        Ok(Self {
            text: text.to_owned(),
            expression: Expressions::get(text)?,
        })
    }

    /// Whether a text has a match.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.expression
            .regex()
            .is_some_and(|regex| regex.is_match(text))
    }
}

/// A regular expression, compiled when it is first used.
#[derive(Debug)]
struct Expression {
    /// With the classes that Go has.
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Expression {
    /// A valid expression.
    fn new(pattern: &str) -> Result<Self, String> {
        let text = with_ascii_classes(pattern);
        let compiled = OnceLock::new();
        // Only an expression that is large, or repeats a part of itself, can be refused for the size of its program.
        let may_be_too_large = text.len() > LARGE_BYTES || text.contains('{');
        if may_be_too_large || regex_syntax::parse(&text).is_err() {
            let regex = Regex::new(&text).map_err(|error| {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default();
                reason.trim_start_matches("error: ").to_owned()
            })?;
            // It is empty.
            let _ = compiled.set(Some(regex));
        }
        Ok(Self { text, compiled })
    }

    /// The program; `None` is never the case, as the expression is valid.
    fn regex(&self) -> Option<&Regex> {
        self.compiled
            .get_or_init(|| Regex::new(&self.text).ok())
            .as_ref()
    }
}

/// A character class has some 20 KiB of program at most, and a program 10 MiB.
const LARGE_BYTES: usize = 512;

/// The expressions of all schemas of the process, by the texts of their patterns.
#[derive(Default)]
struct Expressions {
    known: HashMap<String, Weak<Expression>>,
    /// At so many entries those of dropped schemas are removed.
    full: usize,
}

impl Expressions {
    /// The expression of a pattern.
    fn get(pattern: &str) -> Result<Arc<Expression>, String> {
        static ALL: LazyLock<Mutex<Expressions>> = LazyLock::new(Mutex::default);
        // A panic leaves the table complete: an entry is inserted in one step.
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

/// A pattern whose `\d`, `\w`, `\s` and `\b` know ASCII alone, as in Go: a name that must match `^\w+$` has no umlauts.
/// `\B` stays as it is, as its ASCII form could split a character.
fn with_ascii_classes(pattern: &str) -> String {
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
            // A class inside of a class is one more part of it.
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
