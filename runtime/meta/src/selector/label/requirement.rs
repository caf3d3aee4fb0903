//! A requirement of a label selector, validated when it is made.

use std::fmt;

use crate::field::{FieldError, FieldPath, aggregate};
use crate::names;

/// Maximum number of errors reported for a requirement.
const MAX_ERRORS: usize = 64;

/// Operator of a [`Requirement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `k=v`: the label has this value.
    Equals,
    /// `k==v`: the same as `=`.
    DoubleEquals,
    /// `k!=v`: the label has another value, or is absent.
    NotEquals,
    /// `k in (a,b)`: the label has one of the values.
    In,
    /// `k notin (a,b)`: the label has none of the values, or is absent.
    NotIn,
    /// `k`: the label is present.
    Exists,
    /// `!k`: the label is absent.
    DoesNotExist,
    /// `k>5`: the label is an integer greater than the value.
    GreaterThan,
    /// `k<5`: the label is an integer less than the value.
    LessThan,
}

/// One requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl Requirement {
    /// A validated requirement; the values are sorted, without duplicates.
    ///
    /// # Errors
    /// If the key or a value is malformed, or the operator does not support this number of values.
    pub fn new(
        key: impl Into<String>,
        operator: Operator,
        values: Vec<String>,
    ) -> Result<Self, String> {
        let key = key.into();
        let errors = key_error(&key, || FieldPath::new("key"));
        Self::judged(key, operator, values, errors.into_iter().collect())
    }

    /// A requirement whose key was validated before.
    pub(super) fn with_valid_key(
        key: &str,
        operator: Operator,
        values: Vec<String>,
    ) -> Result<Self, String> {
        Self::judged(key.to_owned(), operator, values, Vec::new())
    }

    /// A requirement, or the errors of its key and its values.
    fn judged(
        key: String,
        operator: Operator,
        mut values: Vec<String>,
        mut errors: Vec<FieldError>,
    ) -> Result<Self, String> {
        values.sort();
        values.dedup();
        let requirement = Self {
            key,
            operator,
            values,
        };
        requirement.judge_values(&mut errors);
        match errors.as_slice() {
            [] => Ok(requirement),
            errors => Err(aggregate(errors)),
        }
    }

    /// Key of the label.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, sorted; none for `Exists` and `DoesNotExist`.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether an object with this value of the label, `None` for an absent one, meets the requirement.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let Some(value) = value else {
            return matches!(
                self.operator,
                Operator::NotEquals | Operator::NotIn | Operator::DoesNotExist
            );
        };
        match self.operator {
            Operator::Exists => true,
            Operator::DoesNotExist => false,
            Operator::Equals | Operator::DoubleEquals | Operator::In => self.has_value(value),
            Operator::NotEquals | Operator::NotIn => !self.has_value(value),
            Operator::GreaterThan => self
                .compared(value)
                .is_some_and(|(label, limit)| label > limit),
            Operator::LessThan => self
                .compared(value)
                .is_some_and(|(label, limit)| label < limit),
        }
    }

    fn has_value(&self, value: &str) -> bool {
        self.values
            .binary_search_by(|v| v.as_str().cmp(value))
            .is_ok()
    }

    /// The label's value and the requirement's, as integers; `None` if the label is not an integer.
    fn compared(&self, value: &str) -> Option<(i64, i64)> {
        Some((value.parse().ok()?, self.values.first()?.parse().ok()?))
    }

    fn judge_values(&self, errors: &mut Vec<FieldError>) {
        // Built for errors only: a selector may have thousands of requirements.
        let path = || FieldPath::new("values");
        if let Some(complaint) = self.count_complaint() {
            errors.push(FieldError::invalid(&path(), &self.values, complaint));
        }
        let integer = matches!(self.operator, Operator::GreaterThan | Operator::LessThan);
        for (i, value) in self.values.iter().enumerate().filter(|_| integer) {
            if value.parse::<i64>().is_err() {
                errors.push(FieldError::invalid(
                    &path().index(i),
                    value,
                    "for 'Gt', 'Lt' operators, the value must be an integer",
                ));
            }
        }
        for (i, value) in self.values.iter().enumerate() {
            // Each text contains the rule, so thousands of malformed values would make a text a hundred times as long.
            if errors.len() >= MAX_ERRORS {
                break;
            }
            let complaints = names::label_value(value);
            if !complaints.is_empty() {
                errors.push(FieldError::invalid(
                    &path().index(i).key(&self.key),
                    value,
                    &complaints.join("; "),
                ));
            }
        }
    }

    fn count_complaint(&self) -> Option<&'static str> {
        let count = self.values.len();
        match self.operator {
            Operator::In | Operator::NotIn if count == 0 => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if count != 1 => {
                Some("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist if count != 0 => {
                Some("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan if count != 1 => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        }
    }
}

/// The error of a malformed label key, at `path`.
pub(super) fn key_error(key: &str, path: impl FnOnce() -> FieldPath) -> Option<FieldError> {
    let complaints = names::label_key(key);
    (!complaints.is_empty()).then(|| FieldError::invalid(&path(), key, &complaints.join("; ")))
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}
