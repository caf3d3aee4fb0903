//! Label selectors: `k=v,k2 in (a,b),!k3,k4>5`.
//!
//! Malformed keys and values are refused by the parser, so matching never fails. Texts and tokens are those of
//! `k8s.io/apimachinery/pkg/labels`.

mod matcher;
mod parse;
mod requirement;

use std::fmt;

pub use matcher::{LabelMatcher, Labels};
pub use requirement::{Operator, Requirement};

/// A parsed label selector; an empty one selects all objects. Requirements are sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// Parses the syntax of the query parameter. The error is the message of the API's BadRequest.
    ///
    /// ```
    /// use apiloom_meta::selector::LabelQuery;
    /// let selector = LabelQuery::parse("app in (web, api), !canary").unwrap();
    /// assert!(selector.matches(|key| (key == "app").then_some("web")));
    /// assert_eq!(LabelQuery::parse("a===b").unwrap_err(), "unable to parse requirement: found '=', expected: identifier");
    /// ```
    ///
    /// # Errors
    /// The parse error, with the text of Kubernetes.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse::requirements(text).map(Self::new)
    }

    /// A selector with these requirements; all of them must match.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key().cmp(b.key()));
        Self { requirements }
    }

    /// Whether all objects are selected.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels (looked up by key) is selected. For many objects, [`LabelMatcher`] is
    /// faster.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|r| r.matches(label(r.key())))
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The value that the label must have, if the selector requires one.
    pub fn requires(&self, key: &str) -> Option<&str> {
        let exact = |r: &&Requirement| {
            r.key() == key
                && matches!(
                    r.operator(),
                    Operator::Equals | Operator::DoubleEquals | Operator::In
                )
        };
        match self.requirements.iter().find(exact)?.values() {
            [only] => Some(only),
            _ => None,
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            write!(f, "{}{requirement}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
