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

impl ConditionStatus {
    /// The status as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
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

/// A type of conditions: [`Condition`], or one that a kind of Kubernetes has of its own.
pub trait StatusCondition: From<Condition> + PartialEq {
    /// The type of the condition.
    fn condition_type(&self) -> &str;

    /// Whether it holds.
    fn is_true(&self) -> bool;

    /// Keeps what a new condition does not change of the present one of its type: the transition time, unless the status is
    /// another one.
    fn keep(&mut self, present: &Self);
}

impl StatusCondition for Condition {
    fn condition_type(&self) -> &str {
        &self.condition_type
    }

    fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }

    fn keep(&mut self, present: &Self) {
        if present.status == self.status {
            self.last_transition_time = present.last_transition_time;
        }
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
    /// The type of the conditions.
    type Condition: StatusCondition;

    /// The condition of a type.
    fn condition(&self, condition_type: &str) -> Option<&Self::Condition>;

    /// Whether there is a condition of a type with the status True.
    fn is_condition_true(&self, condition_type: &str) -> bool {
        self.condition(condition_type)
            .is_some_and(StatusCondition::is_true)
    }

    /// Adds the condition, or updates the one of its type, whose transition time changes only with the status. Returns
    /// whether anything changed.
    fn set_condition(&mut self, condition: Self::Condition) -> bool;

    /// Removes the condition of a type. Returns whether there was one.
    fn remove_condition(&mut self, condition_type: &str) -> bool;
}

impl<C: StatusCondition> Conditions for Vec<C> {
    type Condition = C;

    fn condition(&self, condition_type: &str) -> Option<&C> {
        self.iter().find(|c| c.condition_type() == condition_type)
    }

    fn set_condition(&mut self, mut condition: C) -> bool {
        let Some(present) = self
            .iter_mut()
            .find(|c| c.condition_type() == condition.condition_type())
        else {
            self.push(condition);
            return true;
        };
        condition.keep(present);
        let changed = *present != condition;
        *present = condition;
        changed
    }

    fn remove_condition(&mut self, condition_type: &str) -> bool {
        let before = self.len();
        self.retain(|c| c.condition_type() != condition_type);
        self.len() != before
    }
}

/// A list that is null before it has conditions.
impl<C: StatusCondition> Conditions for Option<Vec<C>> {
    type Condition = C;

    fn condition(&self, condition_type: &str) -> Option<&C> {
        self.as_ref()?.condition(condition_type)
    }

    fn set_condition(&mut self, condition: C) -> bool {
        self.get_or_insert_default().set_condition(condition)
    }

    fn remove_condition(&mut self, condition_type: &str) -> bool {
        self.as_mut()
            .is_some_and(|conditions| conditions.remove_condition(condition_type))
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
    fn a_list_may_be_null_before_it_has_conditions() {
        let mut conditions = None::<Vec<Condition>>;
        assert!(!conditions.remove_condition("Ready"));
        assert!(!conditions.is_condition_true("Ready"));
        assert_eq!(conditions, None);
        assert!(conditions.set_condition(ready(true, "A", 1)));
        assert!(!conditions.set_condition(ready(true, "A", 2)));
        assert_eq!(conditions, Some(vec![ready(true, "A", 1)]));
        assert!(conditions.remove_condition("Ready"));
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
