//! Where the revisions of a new store begin: at the clock.
//!
//! Clients remember revisions for longer than a store lives that is in memory, or whose folder was removed. If the next one
//! began at 1 again, what they remember would be in its future or among its own; so it begins after all that an
//! earlier one can have given, and answers them that they are too old.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Revision;

/// The present time as a revision: microseconds since 1970.
///
/// A store would have to write more than a million times a second, all its life, for the next one to begin before its end;
/// a clock that is set back would have to lose more than the time for which the store before was in use. Such numbers
/// stay below 2^53, which is as far as JavaScript counts, until the year 2255. No two calls of a process give the same.
pub(crate) fn now() -> Revision {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since_1970.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    });
    // SQLite and etcd count in signed numbers.
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
