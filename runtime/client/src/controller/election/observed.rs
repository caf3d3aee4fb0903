//! The lease as a candidate last saw it, and since when it has not changed.

use std::time::Duration;

use tokio::time::Instant;

use super::lease::Lease;

/// A lease, and when its spec was first seen as it is, by the local clock.
#[derive(Clone, Debug)]
pub(super) struct ObservedLease {
    lease: Lease,
    since: Instant,
}

impl ObservedLease {
    /// The lease as it was read just now, after it was seen before or not.
    pub(super) fn update(before: Option<Self>, lease: Lease) -> Self {
        let since = match before {
            // Other fields may change without a renewal.
            Some(before) if before.lease.spec == lease.spec => before.since,
            _ => Instant::now(),
        };
        Self { lease, since }
    }

    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(super) fn is_held_by(&self, identity: &str) -> bool {
        self.lease.spec.holder() == Some(identity)
    }

    /// The holder that others must leave the lease to. The times in the lease are not read: they are those of another
    /// clock. The duration is that which the holder wrote, and `default` if it wrote none.
    pub(super) fn current_holder(&self, default: Duration) -> Option<&str> {
        let holder = self.lease.spec.holder();
        holder.filter(|_| self.since.elapsed() < self.duration(default))
    }

    /// For how long others must still leave the lease to its holder; `None` if it has none any more.
    pub(super) fn time_left(&self, default: Duration) -> Option<Duration> {
        self.current_holder(default)?;
        Some(self.duration(default).saturating_sub(self.since.elapsed()))
    }

    fn duration(&self, default: Duration) -> Duration {
        let seconds = self.lease.spec.lease_duration_seconds;
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        match seconds {
            None | Some(0) => default,
            Some(seconds) => Duration::from_secs(seconds),
        }
    }
}
