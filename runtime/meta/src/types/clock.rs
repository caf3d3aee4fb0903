//! The clock of a server: that of the system, or for tests one that stands still until it is moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::{MicroTime, Time};

/// Where a server reads the time of its writes, such as `creationTimestamp`. Default: the clock of the system.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<ManualClock>);

impl Clock {
    /// The current time, in seconds.
    pub fn now(&self) -> Time {
        match &self.0 {
            None => Time::now(),
            Some(manual) => manual.now(),
        }
    }
}

impl From<ManualClock> for Clock {
    fn from(manual: ManualClock) -> Self {
        Self(Some(manual))
    }
}

/// A clock that stands still, for tests. Its clones, and each [`Clock`] made of it, move together.
///
/// ```
/// use std::time::Duration;
/// use apiloom_meta::{Clock, ManualClock, MicroTime};
///
/// let manual = ManualClock::new("2026-11-23T10:00:00.000000Z".parse::<MicroTime>()?);
/// let clock = Clock::from(manual.clone());
/// manual.advance(Duration::from_secs(90));
/// assert_eq!(clock.now().to_string(), "2026-11-23T10:01:30Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    /// Since the Unix epoch.
    micros: Arc<AtomicI64>,
}

impl ManualClock {
    /// A clock that stands at a time.
    pub fn new(start: MicroTime) -> Self {
        Self {
            micros: Arc::new(AtomicI64::new(start.unix_micros())),
        }
    }

    /// The time of this clock, in seconds.
    pub fn now(&self) -> Time {
        let micros = self.micros.load(Ordering::SeqCst);
        Time::from_unix_seconds(micros.div_euclid(1_000_000))
    }

    /// Moves the clock forward. It stops at the end of the year 9999.
    pub fn advance(&self, duration: Duration) {
        let step = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let later = |micros: i64| {
            let later = MicroTime::from_unix_micros(micros.saturating_add(step));
            Some(later.unix_micros())
        };
        // The closure always has a new value.
        let _ = self
            .micros
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_forward_and_not_past_the_year_9999() {
        let manual = ManualClock::new(MicroTime::from_unix_micros(1_999_999));
        let clock = Clock::from(manual.clone());
        assert_eq!(clock.now().unix_seconds(), 1);
        manual.advance(Duration::from_micros(1));
        assert_eq!(clock.now().unix_seconds(), 2);
        manual.advance(Duration::MAX);
        assert_eq!(clock.now().to_string(), "9999-12-31T23:59:59Z");
    }
}
