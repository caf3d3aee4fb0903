//! Times to live: etcd's leases, each shared by keys that expire at about the same time.
//!
//! One lease per key would cost etcd more than the key does. Keys that share a lease expire together, in one revision.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::failure::Failure;
use super::members::{Members, Safety};

/// A lease is shared with keys that would expire within this part of their time to live before it does.
const SLACK_PERCENT: u32 = 5;
const MAX_SLACK: Duration = Duration::from_secs(60);

/// All keys of a lease are deleted in one transaction, which must stay small.
const MAX_KEYS: u32 = 1_000;

/// Grants and reuses leases.
#[derive(Debug)]
pub(super) struct Leases {
    members: Arc<Members>,
    shared: Mutex<Option<Lease>>,
}

/// The newest lease.
#[derive(Clone, Copy, Debug)]
struct Lease {
    id: i64,
    expires: Instant,
    keys: u32,
}

impl Lease {
    /// Whether a key that should expire at `wanted`, and at the latest at `latest`, may share this lease.
    fn fits(&self, wanted: Instant, latest: Instant) -> bool {
        wanted <= self.expires && self.expires <= latest && self.keys < MAX_KEYS
    }
}

impl Leases {
    pub(super) fn new(members: Arc<Members>) -> Self {
        Self {
            members,
            shared: Mutex::new(None),
        }
    }

    /// The id of a lease that expires after `ttl`, or a little later.
    pub(super) async fn get(&self, ttl: Duration) -> Result<i64, Failure> {
        let now = Instant::now();
        // etcd's leases have whole seconds.
        let ttl = Duration::from_secs(ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0))
            .max(Duration::from_secs(1));
        let slack = (ttl * SLACK_PERCENT / 100).min(MAX_SLACK);
        let slack = Duration::from_secs(slack.as_secs());
        if let Some(shared) = &mut *self.shared.lock()
            && shared.fits(now + ttl, now + ttl + slack)
        {
            shared.keys += 1;
            return Ok(shared.id);
        }
        let seconds = i64::try_from((ttl + slack).as_secs()).unwrap_or(i64::MAX);
        // A retry may grant a second lease without keys, which expires and does no harm.
        let granted = self
            .members
            .call(Safety::Read, async |member| {
                member.lease().grant(seconds, None).await
            })
            .await?;
        *self.shared.lock() = Some(Lease {
            id: granted.id(),
            expires: now + ttl + slack,
            keys: 1,
        });
        Ok(granted.id())
    }

    /// Stops reusing this lease.
    pub(super) fn forget(&self, id: i64) {
        let mut shared = self.shared.lock();
        if shared.is_some_and(|shared| shared.id == id) {
            *shared = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_is_shared_by_keys_that_expire_shortly_before_it() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let lease = |keys| Lease {
            id: 1,
            expires: now + 100 * second,
            keys,
        };
        let check = |wanted, latest, keys, expected| {
            let fits = lease(keys).fits(now + wanted * second, now + latest * second);
            assert_eq!(fits, expected, "{wanted} to {latest} s, {keys} keys");
        };
        check(100, 105, 1, true);
        check(96, 101, 1, true);
        check(95, 100, 999, true);
        check(95, 100, 1_000, false);
        check(101, 106, 1, false);
        check(90, 94, 1, false);
    }
}
