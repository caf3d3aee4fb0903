//! The times of an election.

use std::time::Duration;

/// The waits between attempts are longer than the retry period by up to this part of it.
pub(super) const MAX_JITTER: f64 = 1.2;

/// The times of an election. The defaults are those of Kubernetes' own controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElectionConfig {
    /// How long others leave the lease to a leader that does not renew it. Written into the lease, in whole seconds.
    /// Default: 15 s.
    pub lease_duration: Duration,
    /// How long after it began its last successful renewal a leader may write. The difference to `lease_duration` allows
    /// for writes on their way and for clocks that run faster than others. A request for the lease may take half of it.
    /// Default: 10 s.
    pub renew_deadline: Duration,
    /// The time between attempts. Default: 2 s.
    pub retry_period: Duration,
    /// Whether a leader gives the lease up when its work is done, so that another need not wait. Default: true.
    pub release: bool,
}

impl Default for ElectionConfig {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release: true,
        }
    }
}

/// Times with which there could be two leaders, or none for long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionConfigError {
    /// The lease is kept for less than a leader may write.
    #[error(
        "the lease duration, {lease_duration:?}, must be longer than the renew deadline, {renew_deadline:?}"
    )]
    LeaseDuration {
        /// The lease duration.
        lease_duration: Duration,
        /// The renew deadline.
        renew_deadline: Duration,
    },
    /// A leader would lose the lease by one late renewal.
    #[error(
        "the renew deadline, {renew_deadline:?}, must be longer than {MAX_JITTER} times the retry period, {retry_period:?}"
    )]
    RenewDeadline {
        /// The renew deadline.
        renew_deadline: Duration,
        /// The retry period.
        retry_period: Duration,
    },
    /// Attempts would follow each other without a pause.
    #[error("the retry period must be at least a millisecond, and is {0:?}")]
    RetryPeriod(Duration),
    /// The number of seconds does not fit into the lease.
    #[error("the lease duration, {0:?}, must be at most a year")]
    TooLong(Duration),
    /// A lease without a holder is free.
    #[error("the identity is empty; give each process one of its own")]
    NoIdentity,
}

/// No request gets less time, however short the renew deadline is.
const MIN_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest lease.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

impl ElectionConfig {
    pub(super) fn check(&self) -> Result<(), ElectionConfigError> {
        let Self {
            lease_duration,
            renew_deadline,
            retry_period,
            ..
        } = *self;
        if lease_duration > YEAR {
            return Err(ElectionConfigError::TooLong(lease_duration));
        }
        if lease_duration <= renew_deadline {
            return Err(ElectionConfigError::LeaseDuration {
                lease_duration,
                renew_deadline,
            });
        }
        if retry_period < Duration::from_millis(1) {
            return Err(ElectionConfigError::RetryPeriod(retry_period));
        }
        if renew_deadline.as_secs_f64() <= retry_period.as_secs_f64() * MAX_JITTER {
            return Err(ElectionConfigError::RenewDeadline {
                renew_deadline,
                retry_period,
            });
        }
        Ok(())
    }

    /// How long a request may take: half of the renew deadline, so that a second one may succeed where the first one got no
    /// response.
    pub(super) fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(MIN_REQUEST_TIMEOUT)
    }

    /// The lease duration in seconds, rounded up: others must not wait for less.
    pub(super) fn lease_seconds(&self) -> i32 {
        let seconds = self.lease_duration.as_millis().div_ceil(1000);
        i32::try_from(seconds).unwrap_or(i32::MAX)
    }
}
