//! The first revision of a new store, taken from the clock.
//!
//! Clients remember revisions for longer than an in-memory store lives, or a store whose folder was removed. If the
//! next store began at revision 1, a remembered revision would be in its future, or would name another state. A new
//! store therefore begins after every revision that an earlier store can have given, and answers remembered ones as too
//! old.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Revision;

/// The present time as a revision: microseconds since 1970.
///
/// The next store would begin before the end of this one only if this one made more than a million writes a second for
/// all of its life, or if the clock was set back by more than the time for which this one was in use. The numbers stay
/// below 2^53, the limit of JavaScript's integers, until the year 2255. Each call in a process returns a different
/// revision.
pub(crate) fn now() -> Revision {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since_1970.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    });
    // SQLite and etcd use signed numbers.
    let micros = micros.min(i64::MAX as u64 / 2);
    let next = |last: u64| Some(micros.max(last + 1));
    match LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
        Ok(last) | Err(last) => Revision(micros.max(last + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_grow_and_are_numbers_of_javascript() {
        let first = now();
        let second = now();
        assert!(first < second);
        assert!(second.0 < 1 << 53);
        assert!(first.0 > 1_700_000_000_000_000);
    }
}
