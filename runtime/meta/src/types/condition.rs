//! `Condition`, one observation of an object's state (`meta/v1`, KEP-1623).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::Time;

/// One aspect of the current state of an object.
///
/// In a status it stands in a list keyed by `type`; [`Conditions`] keeps such a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-apiloom-order" = ["type", "status", "observedGeneration", "lastTransitionTime", "reason", "message"]))]
pub struct Condition {
    /// Type in CamelCase.
    #[serde(rename = "type")]
    #[schemars(length(max = 316), extend("format" = "qualified-name"))]
    pub condition_type: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The generation this was observed of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    pub last_transition_time: Time,
    /// Why, in one CamelCase word.
    #[schemars(
        length(min = 1, max = 1024),
        regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    )]
    pub reason: String,
    /// For people.
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// Whether a [`Condition`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[allow(missing_docs, reason = "the names are the API's own")]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl Condition {
    /// A condition, with the current time as its transition time.
    pub fn new(
        condition_type: impl Into<String>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            condition_type: condition_type.into(),
            status: status.into(),
            observed_generation: None,
            last_transition_time: Time::now(),
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// Sets the generation that was observed.
    #[must_use]
    pub fn observed(mut self, generation: i64) -> Self {
        self.observed_generation = Some(generation);
        self
    }
}

/// A list of conditions with one of each type.
///
/// ```
/// use apiloom_meta::{Condition, Conditions};
/// let mut conditions = Vec::new();
/// assert!(conditions.set_condition(Condition::new("Ready", true, "Started", "")));
/// assert!(conditions.is_condition_true("Ready"));
/// assert!(!conditions.set_condition(Condition::new("Ready", true, "Started", "")));
/// ```
pub trait Conditions {
    /// The condition of a type.
    fn condition(&self, condition_type: &str) -> Option<&Condition>;

    /// Whether there is a condition of a type with the status True.
    fn is_condition_true(&self, condition_type: &str) -> bool {
        self.condition(condition_type)
            .is_some_and(|c| c.status == ConditionStatus::True)
    }

    /// Adds the condition, or updates the one of its type, whose transition time changes only with the status. Returns
    /// whether anything changed.
    fn set_condition(&mut self, condition: Condition) -> bool;

    /// Removes the condition of a type. Returns whether there was one.
    fn remove_condition(&mut self, condition_type: &str) -> bool;
}

impl Conditions for Vec<Condition> {
    fn condition(&self, condition_type: &str) -> Option<&Condition> {
        self.iter().find(|c| c.condition_type == condition_type)
    }

    fn set_condition(&mut self, mut condition: Condition) -> bool {
        let Some(present) = self
            .iter_mut()
            .find(|c| c.condition_type == condition.condition_type)
        else {
            self.push(condition);
            return true;
        };
        if present.status == condition.status {
            condition.last_transition_time = present.last_transition_time;
        }
        let changed = *present != condition;
        *present = condition;
        changed
    }

    fn remove_condition(&mut self, condition_type: &str) -> bool {
        let before = self.len();
        self.retain(|c| c.condition_type != condition_type);
        self.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: bool, reason: &str, at: i64) -> Condition {
        Condition {
            last_transition_time: Time::from_unix_seconds(at),
            ..Condition::new("Ready", status, reason, "")
        }
    }

    #[test]
    fn the_transition_time_moves_with_the_status_only() {
        let mut conditions = vec![ready(true, "A", 1)];
        assert!(!conditions.set_condition(ready(true, "A", 2)));
        assert_eq!(conditions, [ready(true, "A", 1)]);
        assert!(conditions.set_condition(ready(true, "B", 3)));
        assert_eq!(conditions, [ready(true, "B", 1)]);
        assert!(conditions.set_condition(ready(false, "B", 4)));
        assert_eq!(conditions, [ready(false, "B", 4)]);
        assert!(conditions.set_condition(ready(false, "B", 5).observed(7)));
        assert_eq!(conditions, [ready(false, "B", 4).observed(7)]);
    }

    #[test]
    fn there_is_one_of_each_type() {
        let mut conditions = Vec::new();
        assert!(conditions.set_condition(Condition::new("Ready", true, "A", "")));
        assert!(conditions.set_condition(Condition::new(
            "Synced",
            ConditionStatus::Unknown,
            "A",
            ""
        )));
        assert!(conditions.set_condition(Condition::new("Ready", false, "A", "")));
        assert_eq!(conditions.len(), 2);
        assert!(!conditions.is_condition_true("Ready"));
        assert!(!conditions.is_condition_true("Other"));
        assert!(conditions.remove_condition("Ready"));
        assert!(!conditions.remove_condition("Ready"));
        assert_eq!(conditions.condition("Ready"), None);
    }

    #[test]
    fn stands_in_json_under_the_names_of_the_api() {
        let json = r#"{"type":"Ready","status":"True","observedGeneration":2,"lastTransitionTime":"1970-01-01T00:00:01Z","reason":"A","message":""}"#;
        assert_eq!(
            serde_json::to_string(&ready(true, "A", 1).observed(2)).unwrap(),
            json
        );
        assert_eq!(
            serde_json::from_str::<Condition>(json).unwrap(),
            ready(true, "A", 1).observed(2)
        );
    }
}
