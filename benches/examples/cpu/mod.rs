//! CPU time so far, which the programs that measure share.

use std::time::Duration;

use rustix::time::ClockId;

/// The CPU time that a clock has counted: of this process, or of this thread.
pub(crate) fn time(clock: ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}
