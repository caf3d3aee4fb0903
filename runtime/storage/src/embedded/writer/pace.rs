//! How many rows of compacted history are removed at a time.

use std::time::Duration;

/// Target time of a step of the sweep, out of the 5 ms that a write may wait for it. Within a step no row is begun
/// after this time, and the number of rows of the next step follows from how long this one took with its commit.
pub(super) const SWEEP_TIME: Duration = Duration::from_millis(2);
const SWEEP_ROWS: usize = 512;

/// The number of rows of a step of the sweep.
#[derive(Debug)]
pub(super) struct Pace {
    pub(super) rows: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rows: 16 }
    }
}

impl Pace {
    /// Adjusts the number of rows after a step: down at once after a long step, up gradually after short ones.
    pub(super) fn adapt(&mut self, done: usize, took: Duration) {
        if took > SWEEP_TIME {
            let fitting = done as u128 * SWEEP_TIME.as_nanos() / took.as_nanos().max(1);
            self.rows = usize::try_from(fitting).unwrap_or(SWEEP_ROWS).max(1);
        } else if done >= self.rows {
            self.rows = (self.rows + self.rows / 2 + 1).min(SWEEP_ROWS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest step, after the first few, on a disk with these times per row and per commit.
    fn longest(row: Duration, commit: Duration) -> Duration {
        let mut pace = Pace::default();
        let mut longest = Duration::ZERO;
        for step in 0..100 {
            // No row is begun after the target time.
            let in_time = (SWEEP_TIME.as_nanos() / row.as_nanos()) as usize + 1;
            let done = pace.rows.min(in_time);
            let took = row * done as u32 + commit;
            pace.adapt(done, took);
            if step > 2 {
                longest = longest.max(took);
            }
        }
        longest
    }

    #[test]
    fn steps_stay_short_whatever_the_disk() {
        let check = |row_micros, commit_micros| {
            let commit = Duration::from_micros(commit_micros);
            let longest = longest(Duration::from_micros(row_micros), commit);
            assert!(longest < Duration::from_millis(5), "{longest:?}");
        };
        check(2, 50);
        check(5, 500);
        check(20, 1_500);
        check(200, 100);
        check(1_000, 1_900);
    }

    #[test]
    fn steps_grow_where_the_disk_is_fast() {
        let mut pace = Pace::default();
        for _ in 0..30 {
            pace.adapt(pace.rows, Duration::from_micros(100));
        }
        assert_eq!(pace.rows, SWEEP_ROWS);
        pace.adapt(SWEEP_ROWS, Duration::from_millis(40));
        assert_eq!(pace.rows, SWEEP_ROWS / 20);
        pace.adapt(3, Duration::from_millis(1));
        assert_eq!(pace.rows, SWEEP_ROWS / 20, "there was no more to do");
    }
}
