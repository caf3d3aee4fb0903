//! Times in the future that no delay can overflow.

use std::time::Duration;

use tokio::time::Instant;

/// Longer delays are shortened to it: the clock of the system cannot add any number of years.
const MAX_DELAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The time after a delay of at most ten years.
pub(super) fn later(now: Instant, delay: Duration) -> Instant {
    now + delay.min(MAX_DELAY)
}
