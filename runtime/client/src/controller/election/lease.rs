//! Lease of coordination.k8s.io/v1, as far as an election needs it.

use apiloom_meta::{MicroTime, ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A lock that its holder renews. Fields that are not listed here are kept as they are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its holder.
    pub spec: LeaseSpec,
    /// All other fields, such as `apiVersion` and `kind`.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Who holds a lease, and for how long. Fields that are not listed here are kept as they are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseSpec {
    /// The holder; absent or empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder_identity: Option<String>,
    /// For how many seconds without a renewal others leave the lease to its holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_duration_seconds: Option<i32>,
    /// When the holder got the lease, by its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquire_time: Option<MicroTime>,
    /// When the holder renewed it last, by its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_time: Option<MicroTime>,
    /// How often the lease went from one holder to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_transitions: Option<i32>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl LeaseSpec {
    /// The holder, if there is one.
    pub fn holder(&self) -> Option<&str> {
        let holder = self.holder_identity.as_deref();
        holder.filter(|holder| !holder.is_empty())
    }
}
