//! Field selectors: `metadata.name=a,spec.referenceType!=Flunder`.
//!
//! A backslash in a value escapes a backslash, a comma or an equals sign; field names have no escapes. The supported
//! fields depend on the kind, and are not checked here.

mod matcher;

use std::borrow::Cow;
use std::fmt;

use crate::field::echoed;

pub use matcher::FieldMatcher;

/// A parsed field selector; an empty one selects all objects. Requirements are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

/// One requirement of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// Path of the field, such as `metadata.name`.
    pub field: String,
    /// True for `=` and `==`, false for `!=`.
    pub equals: bool,
    /// The value to compare with.
    pub value: String,
}

impl FieldSelector {
    /// Parses the syntax of the query parameter.
    ///
    /// # Errors
    /// The parse error, with the text of Kubernetes.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut terms = terms(text);
        // Kubernetes reports the first malformed term in this order.
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|t| !t.is_empty()) {
            let Some((field, equals, value)) = split(term) else {
                return Err(format!(
                    "invalid selector: '{}'; can't understand '{}'",
                    echoed(text),
                    echoed(term)
                ));
            };
            requirements.push(FieldRequirement {
                field: field.to_owned(),
                equals,
                value: unescape(value)?,
            });
        }
        Ok(Self::new(requirements))
    }

    /// A selector with these requirements; all of them must match.
    pub fn new(mut requirements: Vec<FieldRequirement>) -> Self {
        requirements.sort_by_cached_key(ToString::to_string);
        Self { requirements }
    }

    /// Whether all objects are selected.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements, sorted.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// The value that `field` must be equal to, if the selector requires one.
    pub fn requires(&self, field: &str) -> Option<&str> {
        self.requirements
            .iter()
            .find(|r| r.equals && r.field == field)
            .map(|r| r.value.as_str())
    }

    /// Whether an object is selected; `field` returns the value of a field, the empty string for a missing one.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Cow<'a, str>) -> bool {
        self.requirements
            .iter()
            .all(|r| (field(&r.field) == r.value.as_str()) == r.equals)
    }
}

/// Splits a selector at commas, except for escaped ones.
fn terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (i, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits a term at its first operator: field, whether `=`, and the value with its escapes.
fn split(term: &str) -> Option<(&str, bool, &str)> {
    let equals_at = term.find('=')?;
    let (before, after) = (&term[..equals_at], &term[equals_at + 1..]);
    match before.strip_suffix('!') {
        Some(field) => Some((field, false, after)),
        None => Some((before, true, after.strip_prefix('=').unwrap_or(after))),
    }
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let unknown = other.map(String::from).unwrap_or_default();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: \\{unknown}"
                    ));
                }
            },
            // Kubernetes prints the number of the character, not the character.
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                ));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.field, if self.equals { "=" } else { "!=" })?;
        for c in self.value.chars() {
            if matches!(c, '\\' | ',' | '=') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            write!(f, "{}{requirement}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
