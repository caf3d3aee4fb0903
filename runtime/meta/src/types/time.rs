//! Points in time as the API prints them: RFC 3339 in UTC, to the second or to the microsecond.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point in time with second precision: `2026-11-21T09:28:46Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Time(i64);

impl Time {
    /// From seconds since the Unix epoch.
    pub fn from_unix_seconds(seconds: i64) -> Self {
        Self(seconds)
    }
    /// Seconds since the Unix epoch.
    pub fn unix_seconds(self) -> i64 {
        self.0
    }
}

/// A point in time with microsecond precision: `2026-11-21T09:28:46.000000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct MicroTime(i64);
