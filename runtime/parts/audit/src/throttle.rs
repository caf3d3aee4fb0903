//! A limit for the rate of batches: a bucket of tokens, as client-go's.

use std::time::{Duration, Instant};

/// At most `burst` at once, and `per_second` on average.
#[derive(Debug)]
pub(super) struct Throttle {
    per_second: f64,
    burst: f64,
    tokens: f64,
    last: Option<Instant>,
}

impl Throttle {
    /// Both numbers are above zero.
    pub(super) fn new(per_second: f32, burst: u32) -> Self {
        Self {
            per_second: f64::from(per_second),
            burst: f64::from(burst),
            tokens: f64::from(burst),
            last: None,
        }
    }

    /// Takes a token; returns how long to wait until it is there.
    pub(super) fn wait(&mut self, now: Instant) -> Duration {
        let passed = self.last.map(|last| now.saturating_duration_since(last));
        let passed = passed.unwrap_or_default().as_secs_f64();
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst) - 1.0;
        self.last = Some(now);
        let missing = (-self.tokens / self.per_second).max(0.0);
        Duration::try_from_secs_f64(missing).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_then_the_rate_holds() {
        let mut throttle = Throttle::new(10.0, 2);
        let start = Instant::now();
        let tenth = Duration::from_millis(100);
        let waits = [0, 0, 0].map(|_| throttle.wait(start));
        assert_eq!(waits, [Duration::ZERO, Duration::ZERO, tenth]);
        assert_eq!(throttle.wait(start + tenth), tenth);
        let rested = start + Duration::from_secs(60);
        assert_eq!(throttle.wait(rested), Duration::ZERO);
        assert_eq!(throttle.wait(rested), Duration::ZERO);
        assert_eq!(throttle.wait(rested), tenth);
    }
}
