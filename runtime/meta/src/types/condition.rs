//! `Condition`, one observation of an object's state (`meta/v1`, KEP-1623).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::Time;

/// One aspect of the current state of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type in CamelCase.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The generation this was observed of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    pub last_transition_time: Time,
    /// Why, in one CamelCase word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// Whether a [`Condition`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names are the API's own")]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}
