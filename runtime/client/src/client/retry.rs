//! When a request is sent again: client-go's rules.

use std::time::Duration;

use http::{Method, StatusCode};

use crate::error::Error;

/// When a request is sent again by the client itself.
///
/// - A refusal with 429 or 5xx that has a `Retry-After`: the server did nothing, and asks to try again. For all methods.
/// - No answer, or one that broke off: for GET only. What another method did is unknown, and it could be
///   done twice. A connection that cannot be made at all is not retried: callers learn of it at once.
///
/// Watches are never retried: their errors decide whether they resume or begin again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryRules {
    /// Most attempts after the first one. Default 10.
    pub max_retries: u32,
    /// The first wait after a broken connection, which doubles with each further one. Default 100 milliseconds.
    pub first_wait: Duration,
    /// The longest wait. A server that asks for more gets no second attempt: the caller can wait as the error says. Default
    /// 30 seconds.
    pub max_wait: Duration,
}

impl Default for RetryRules {
    fn default() -> Self {
        Self {
            max_retries: 10,
            first_wait: Duration::from_millis(100),
            max_wait: Duration::from_secs(30),
        }
    }
}

impl RetryRules {
    /// Every request is sent at most once.
    pub fn none() -> Self {
        Self {
            max_retries: 0,
            ..Self::default()
        }
    }

    /// The wait before the next attempt; `None` if there is none. `retries` have been made.
    pub(super) fn wait(&self, method: &Method, error: &Error, retries: u32) -> Option<Duration> {
        if retries >= self.max_retries {
            return None;
        }
        match error {
            Error::Api(_) => {
                let code = StatusCode::from_u16(error.code()?).ok()?;
                let is_temporary = code == StatusCode::TOO_MANY_REQUESTS || code.is_server_error();
                let asked = error.retry_after().filter(|_| is_temporary)?;
                // Clients that were refused together do not come back together.
                (asked <= self.max_wait).then(|| longer(asked, 0.1))
            }
            Error::Transport(failure) if method == Method::GET && !failure.is_unsent() => {
                let wait = self.first_wait * 2_u32.saturating_pow(retries.min(16));
                Some(longer(wait.min(self.max_wait), 0.5))
            }
            _ => None,
        }
    }
}

/// The duration, longer by a random part of up to `most` times itself.
fn longer(duration: Duration, most: f64) -> Duration {
    duration.mul_f64(1.0 + fastrand::f64() * most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_only_lengthens() {
        let second = Duration::from_secs(1);
        for _ in 0..100 {
            let longer = longer(second, 0.5);
            assert!(longer >= second && longer < second.mul_f64(1.5));
        }
    }
}
