//! Delays between attempts: they grow with each failure, and are random, so that many clients do not come back at once.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Delay after the first failure; each further one doubles it.
const FIRST: Duration = Duration::from_millis(800);
/// Longest delay, before it is varied.
const LONGEST: Duration = Duration::from_secs(30);
/// Time without a failure after which the next one counts as the first.
const RESET: Duration = Duration::from_secs(120);
/// Longest time that a server's `Retry-After` is followed.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// The failures of one reflector. Delays are those of client-go: 0.8 s to 30 s, each extended by up to its own length.
#[derive(Debug)]
pub(super) struct Backoff {
    failures: u32,
    last: Option<Instant>,
    random: fastrand::Rng,
}

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            failures: 0,
            last: None,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Whether a failure was not long ago.
    pub(super) fn has_failed_recently(&self) -> bool {
        self.last.is_some_and(|last| last.elapsed() < RESET)
    }

    /// Counts a failure; the result is how long to wait.
    pub(super) fn next(&mut self, retry_after: Option<Duration>) -> Duration {
        if !self.has_failed_recently() {
            self.failures = 0;
        }
        let doubled = FIRST.saturating_mul(1 << self.failures.min(16));
        let delay = doubled.min(LONGEST).mul_f64(1.0 + self.random.f64());
        let asked = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        let delay = delay.max(asked);
        self.failures += 1;
        self.last = Some(Instant::now() + delay);
        delay
    }

    /// Counts a failure and waits.
    pub(super) async fn wait(&mut self, retry_after: Option<Duration>) {
        let delay = self.next(retry_after);
        sleep(delay).await;
    }

    /// Counts a failure, and waits only if there was another one not long ago.
    pub(super) async fn wait_if_repeated(&mut self) {
        let is_repeated = self.has_failed_recently();
        let delay = self.next(None);
        if is_repeated {
            sleep(delay).await;
        } else {
            self.last = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn delays_grow_to_the_longest_and_begin_again_after_a_quiet_time() {
        let mut backoff = Backoff::new(1);
        let mut expected = FIRST;
        for _ in 0..10 {
            let delay = backoff.next(None);
            assert!(delay >= expected && delay < expected * 2, "{delay:?}");
            sleep(delay).await;
            expected = (expected * 2).min(LONGEST);
        }
        sleep(RESET).await;
        assert!(backoff.next(None) < FIRST * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn trap_22_clients_that_fail_together_come_back_apart() {
        let delays = (0..100).map(|seed| Backoff::new(seed).next(None));
        let mut delays: Vec<Duration> = delays.collect();
        delays.sort();
        // Some in each tenth of the range.
        for tenth in 0..10 {
            let begin = FIRST + FIRST * tenth / 10;
            let range = begin..begin + FIRST / 10;
            assert!(
                delays.iter().any(|delay| range.contains(delay)),
                "{delays:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_extends_a_delay_within_limits() {
        let mut backoff = Backoff::new(1);
        let minute = Duration::from_secs(60);
        assert_eq!(backoff.next(Some(minute)), minute);
        assert_eq!(backoff.next(Some(minute * 600)), LONGEST_RETRY_AFTER);
        assert!(Backoff::new(1).next(Some(Duration::ZERO)) >= FIRST);
    }
}
