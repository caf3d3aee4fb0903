//! `LabelSelector`, the structured form in objects.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::field::{FieldError, FieldPath};
use crate::labels::label_errors;
use crate::names;
use crate::selector::LabelQuery;
use crate::selector::label::{Operator, Requirement};
use crate::types::SortedMap;

/// Selects objects by their labels; all requirements must hold. The empty selector selects everything.
///
/// ```
/// use apiloom_meta::LabelSelector;
/// let selector = LabelSelector::from_iter([("app", "web")]);
/// assert_eq!(selector.to_query().unwrap().to_string(), "app=web");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-map-type" = "atomic", "x-apiloom-order" = ["matchLabels", "matchExpressions"]))]
pub struct LabelSelector {
    /// Labels that must have these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-apiloom-omit-empty" = true))]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "x-apiloom-omit-empty" = true))]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One requirement of a [`LabelSelector`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-apiloom-order" = ["key", "operator", "values"]))]
pub struct LabelSelectorRequirement {
    /// The label.
    pub key: String,
    /// How it relates to the values.
    pub operator: LabelSelectorOperator,
    /// The values; empty for `Exists` and `DoesNotExist`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "x-apiloom-omit-empty" = true))]
    pub values: Vec<String>,
}

/// Operators of a [`LabelSelectorRequirement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[allow(missing_docs, reason = "the names are the API's own")]
pub enum LabelSelectorOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// Converts to the form of lists and watches.
    ///
    /// # Errors
    /// If a key or value is malformed, or an operator has the wrong number of values; the text has the fields of the
    /// first bad requirement.
    pub fn to_query(&self) -> Result<LabelQuery, String> {
        let labels = self
            .match_labels
            .iter()
            .map(|(key, value)| Requirement::new(key, Operator::Equals, vec![value.clone()]));
        let expressions = self
            .match_expressions
            .iter()
            .map(|e| Requirement::new(&e.key, e.operator.into(), e.values.clone()));
        labels
            .chain(expressions)
            .collect::<Result<_, _>>()
            .map(LabelQuery::new)
    }

    /// Whether an object with these labels is selected. For many objects, convert with [`LabelSelector::to_query`]
    /// once.
    ///
    /// # Errors
    /// As [`LabelSelector::to_query`].
    pub fn matches(&self, labels: &SortedMap<String, String>) -> Result<bool, String> {
        Ok(self
            .to_query()?
            .matches(|key| labels.get(key).map(String::as_str)))
    }

    /// The problems of the selector, by field.
    pub fn validate(&self, path: &FieldPath) -> Vec<FieldError> {
        let labels = self
            .match_labels
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()));
        let mut errors = label_errors(labels, &path.child("matchLabels"));
        for (i, expression) in self.match_expressions.iter().enumerate() {
            errors.extend(expression.validate(&path.child("matchExpressions").index(i)));
        }
        errors
    }
}

impl LabelSelectorRequirement {
    fn validate(&self, path: &FieldPath) -> Vec<FieldError> {
        let values = path.child("values");
        let mut errors = Vec::new();
        match self.operator {
            LabelSelectorOperator::In | LabelSelectorOperator::NotIn if self.values.is_empty() => {
                errors.push(FieldError::required(
                    &values,
                    "must be specified when `operator` is 'In' or 'NotIn'",
                ));
            }
            LabelSelectorOperator::Exists | LabelSelectorOperator::DoesNotExist
                if !self.values.is_empty() =>
            {
                errors.push(FieldError::forbidden(
                    &values,
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ));
            }
            _ => {}
        }
        errors.extend(
            names::label_key(&self.key)
                .iter()
                .map(|c| FieldError::invalid(&path.child("key"), &self.key, c)),
        );
        for (i, value) in self.values.iter().enumerate() {
            errors.extend(
                names::label_value(value)
                    .iter()
                    .map(|c| FieldError::invalid(&values.index(i), value, c)),
            );
        }
        errors
    }
}

impl From<LabelSelectorOperator> for Operator {
    fn from(operator: LabelSelectorOperator) -> Self {
        match operator {
            LabelSelectorOperator::In => Self::In,
            LabelSelectorOperator::NotIn => Self::NotIn,
            LabelSelectorOperator::Exists => Self::Exists,
            LabelSelectorOperator::DoesNotExist => Self::DoesNotExist,
        }
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for LabelSelector {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(labels: I) -> Self {
        let match_labels = labels
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        Self {
            match_labels,
            match_expressions: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn selector(value: Value) -> LabelSelector {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn becomes_the_query_form() {
        let all = selector(json!({
            "matchLabels": {"b": "2", "a": "1"},
            "matchExpressions": [
                {"key": "d", "operator": "In", "values": ["y", "x"]},
                {"key": "c", "operator": "NotIn", "values": [""]},
                {"key": "e", "operator": "Exists"},
                {"key": "f", "operator": "DoesNotExist"},
            ],
        }));
        assert_eq!(
            all.to_query().unwrap().to_string(),
            "a=1,b=2,c notin (),d in (x,y),e,!f"
        );
        assert!(LabelSelector::default().to_query().unwrap().is_everything());
    }

    #[test]
    fn matches_labels() {
        let labels = SortedMap::from([("app".to_owned(), "web".to_owned())]);
        assert_eq!(LabelSelector::default().matches(&labels), Ok(true));
        assert_eq!(
            LabelSelector::from_iter([("app", "web")]).matches(&labels),
            Ok(true)
        );
        assert_eq!(
            LabelSelector::from_iter([("app", "api")]).matches(&labels),
            Ok(false)
        );
    }

    #[test]
    fn a_bad_requirement_makes_no_query() {
        let bad = selector(json!({"matchExpressions": [{"key": "a", "operator": "In"}]}));
        assert_eq!(
            bad.to_query().unwrap_err(),
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        );
    }

    #[test]
    fn validation_names_every_field() {
        let bad = selector(json!({
            "matchLabels": {"a": &"x".repeat(64)},
            "matchExpressions": [
                {"key": "a", "operator": "NotIn"},
                {"key": "", "operator": "Exists", "values": ["a"]},
                {"key": "a", "operator": "In", "values": ["a", &"x".repeat(64)]},
            ],
        }));
        let found = bad.validate(&FieldPath::new("spec.selector"));
        let found: Vec<_> = found
            .iter()
            .map(|e| (e.path.to_string(), e.kind.as_str()))
            .collect();
        let expected = [
            ("spec.selector.matchLabels", "FieldValueInvalid"),
            (
                "spec.selector.matchExpressions[0].values",
                "FieldValueRequired",
            ),
            (
                "spec.selector.matchExpressions[1].values",
                "FieldValueForbidden",
            ),
            ("spec.selector.matchExpressions[1].key", "FieldValueInvalid"),
            ("spec.selector.matchExpressions[1].key", "FieldValueInvalid"),
            (
                "spec.selector.matchExpressions[2].values[1]",
                "FieldValueInvalid",
            ),
        ];
        assert_eq!(found, expected.map(|(path, kind)| (path.to_owned(), kind)));
    }
}
