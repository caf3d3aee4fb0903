//! The two clocks of an election: one that only runs forward, and that of the wall.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use apiloom_meta::MicroTime;
use tokio::time::Instant;

/// Reads both clocks.
#[derive(Clone)]
pub(super) struct Clocks {
    wall: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

/// A point in time on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) monotonic: Instant,
    wall: SystemTime,
}

impl Default for Clocks {
    fn default() -> Self {
        Self::with_wall(SystemTime::now)
    }
}

impl Clocks {
    pub(super) fn with_wall(wall: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            wall: Arc::new(wall),
        }
    }

    pub(super) fn read(&self) -> Reading {
        Reading {
            monotonic: Instant::now(),
            wall: (self.wall)(),
        }
    }

    /// The longer of the times that have passed on the two clocks: the monotonic one stands still while the machine is
    /// suspended, the other one may be set back. A leader counts its time so, and at worst gives up early.
    pub(super) fn longest_since(&self, earlier: Reading) -> Duration {
        let by_wall = (self.wall)().duration_since(earlier.wall);
        let monotonic = earlier.monotonic.elapsed();
        monotonic.max(by_wall.unwrap_or_default())
    }

    /// The time of the wall, for people who read a lease.
    pub(super) fn wall(&self) -> MicroTime {
        let since = (self.wall)().duration_since(SystemTime::UNIX_EPOCH);
        let micros = since.unwrap_or_default().as_micros();
        MicroTime::from_unix_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}

impl fmt::Debug for Clocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clocks")
    }
}
