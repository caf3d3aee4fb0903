//! `Status`, the response without an object: failures, and deletions that removed the object.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::ListMeta;

/// Status is a return value for calls that do not return other objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Always `Status`.
    pub kind: String,
    /// Always `v1`.
    pub api_version: String,
    /// Mostly empty; carries a continue token in a 410 of a paged list.
    #[serde(default)]
    pub metadata: ListMeta,
    /// `Success` or `Failure`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// For programs; absent for unknown errors.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// The HTTP status code; absent in the answer to a deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
}

impl Status {
    /// A status without details.
    pub(crate) fn new(status: &str) -> Self {
        Self {
            kind: "Status".to_owned(),
            api_version: "v1".to_owned(),
            metadata: ListMeta::default(),
            status: status.to_owned(),
            message: String::new(),
            reason: String::new(),
            details: None,
            code: None,
        }
    }

    /// A status of which only the message is known, without a kind.
    pub fn of_message(message: String) -> Self {
        Self {
            kind: String::new(),
            api_version: String::new(),
            message,
            ..Self::new("")
        }
    }

    /// A success, such as the response to a deletion; it has no code.
    pub fn success() -> Self {
        Self::new("Success")
    }

    /// Sets the details.
    #[must_use]
    pub fn with_details(mut self, details: StatusDetails) -> Self {
        self.details = Some(details);
        self
    }
}

/// StatusDetails says what a Status is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Its resource; for `Invalid` its kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One entry per cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// Seconds to wait before trying again; also the `Retry-After` header.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// StatusCause is one cause of a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusCause {
    /// Which kind of cause.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field, as a path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: &Status, json: &str) {
        assert_eq!(serde_json::to_string(status).unwrap(), json);
        assert_eq!(serde_json::from_str::<Status>(json).unwrap(), *status);
    }

    #[test]
    fn a_deletion_is_a_success_without_code() {
        let details = StatusDetails {
            name: "f9".to_owned(),
            group: "ex.io".to_owned(),
            kind: "foos".to_owned(),
            uid: "U".to_owned(),
            ..StatusDetails::default()
        };
        check(
            &Status::success().with_details(details),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"f9","group":"ex.io","kind":"foos","uid":"U"}}"#,
        );
    }
}
