//! The configuration of an embedded store.

use std::time::Duration;

use crate::{Retention, Revision};

/// The configuration of an embedded store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedConfig {
    /// How much history is kept.
    pub retention: Retention,
    /// Maximum size of the file; at this size writes fail as on a full disk. `None`: no limit.
    pub max_bytes: Option<u64>,
    /// The revision after which a new store begins; `None` for the clock, as microseconds since 1970. Then revisions
    /// that clients remember from an earlier store in this place are too old instead of in the future.
    pub begin_after: Option<Revision>,
    /// How often all checksums are verified in the background, the first time soon after the start.
    pub verify_interval: Duration,
    #[doc(hidden)]
    pub safety: Safety,
}

/// Safety measures that only tests switch off, to check that their absence is noticed.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Safety {
    /// Whether checksums are verified when data is read.
    pub verifies_reads: bool,
    /// Whether commits are synced.
    pub syncs: bool,
}

impl Default for Safety {
    fn default() -> Self {
        Self {
            verifies_reads: true,
            syncs: true,
        }
    }
}

impl Default for EmbeddedConfig {
    fn default() -> Self {
        Self {
            retention: Retention::default(),
            max_bytes: None,
            begin_after: None,
            verify_interval: Duration::from_secs(24 * 3600),
            safety: Safety::default(),
        }
    }
}
