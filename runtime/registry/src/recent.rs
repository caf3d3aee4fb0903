//! A small cache of recent results, for callers that need the same result at about the same time.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// Maximum number of entries: more than concurrent watchers are apart from each other, or clients read pages at a
/// time.
pub(crate) const MAX_ENTRIES: usize = 64;

/// Maximum size of all entries, in bytes: enough for the old and the new state of an object of the maximum size, in
/// two forms.
pub(crate) const MOST_BYTES: usize = 12 << 20;

/// The most recent results, limited in number and size. Results are computed without the lock, so two callers may
/// compute the same one at the same time.
#[derive(Debug)]
pub(crate) struct Recent<T>(Mutex<Entries<T>>);

#[derive(Debug)]
struct Entries<T> {
    /// Each entry with its size in bytes.
    made: VecDeque<(usize, T)>,
    bytes: usize,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::new(Entries {
            made: VecDeque::new(),
            bytes: 0,
        }))
    }
}

impl<T> Recent<T> {
    /// Calls `look` for the entries, newest first, and returns its first result.
    pub(crate) fn find<R>(&self, mut look: impl FnMut(&T) -> Option<R>) -> Option<R> {
        let kept = self.0.lock();
        kept.made.iter().rev().find_map(|(_, made)| look(made))
    }

    /// Adds an entry with its size in bytes, and evicts the oldest ones to make place. An entry larger than the total
    /// limit is not kept.
    pub(crate) fn keep(&self, made: T, bytes: usize) {
        if bytes > MOST_BYTES {
            return;
        }
        // Dropped after the lock is released.
        let mut dropped = Vec::new();
        let mut kept = self.0.lock();
        while kept.made.len() == MAX_ENTRIES || kept.bytes + bytes > MOST_BYTES {
            let Some((freed, oldest)) = kept.made.pop_front() else {
                break;
            };
            kept.bytes -= freed;
            dropped.push(oldest);
        }
        kept.bytes += bytes;
        kept.made.push_back((bytes, made));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(recent: &Recent<u32>) -> Vec<u32> {
        let kept = recent.0.lock();
        assert_eq!(
            kept.bytes,
            kept.made.iter().map(|(bytes, _)| bytes).sum::<usize>()
        );
        kept.made.iter().map(|(_, made)| *made).collect()
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_or_they_are_too_large() {
        let recent = Recent::default();
        for number in 0..=MAX_ENTRIES as u32 {
            recent.keep(number, 1);
        }
        assert_eq!(kept(&recent), (1..=MAX_ENTRIES as u32).collect::<Vec<_>>());
        recent.keep(100, MOST_BYTES / 2);
        recent.keep(101, MOST_BYTES / 2);
        assert_eq!(kept(&recent), [100, 101]);
        recent.keep(102, MOST_BYTES + 1);
        assert_eq!(
            kept(&recent),
            [100, 101],
            "one that is too large is not kept"
        );
        recent.keep(103, 1);
        assert_eq!(kept(&recent), [101, 103]);
    }
}
