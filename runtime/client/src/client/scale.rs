//! `Scale` of `autoscaling/v1`: the number of replicas of any kind that has one.

use apiloom_meta::ObjectMeta;
use serde::{Deserialize, Serialize};

/// The number of replicas that an object should have, and has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scale {
    /// Always `autoscaling/v1`.
    pub api_version: String,
    /// Always `Scale`.
    pub kind: String,
    /// Metadata of the object; with a resourceVersion an update is refused if the object has changed.
    pub metadata: ObjectMeta,
    /// The number that it should have.
    pub spec: ScaleSpec,
    /// The number that it has.
    pub status: ScaleStatus,
}

/// The desired part of a [`Scale`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScaleSpec {
    /// Number of replicas.
    pub replicas: i32,
}

/// The observed part of a [`Scale`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScaleStatus {
    /// Number of replicas.
    pub replicas: i32,
    /// Selects the replicas, in the syntax of a query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selector: String,
}

impl Default for Scale {
    fn default() -> Self {
        Self {
            api_version: "autoscaling/v1".to_owned(),
            kind: "Scale".to_owned(),
            metadata: ObjectMeta::default(),
            spec: ScaleSpec::default(),
            status: ScaleStatus::default(),
        }
    }
}

impl Scale {
    /// A scale of the object with this name.
    pub fn new(name: &str, replicas: i32) -> Self {
        Self {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            spec: ScaleSpec { replicas },
            ..Self::default()
        }
    }
}
