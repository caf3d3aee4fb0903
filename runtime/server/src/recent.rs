//! What was made lately, for those who need the same at about the same time.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// How many are kept: more than watchers are apart from each other, or clients page at a time.
pub(crate) const KEPT: usize = 64;

/// How many bytes they may have together: enough for the state before and the state after a change of an object of the
/// largest size, in two forms.
pub(crate) const MOST_BYTES: usize = 12 << 20;

/// The last things that were made, newest last, bounded in number and bytes. A caller that finds none makes it without
/// the lock: two may do it at the same time, and both be right.
#[derive(Debug)]
pub(crate) struct Recent<T>(Mutex<Kept<T>>);

#[derive(Debug)]
struct Kept<T> {
    /// Each with its bytes.
    made: VecDeque<(usize, T)>,
    bytes: usize,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::new(Kept {
            made: VecDeque::new(),
            bytes: 0,
        }))
    }
}

impl<T> Recent<T> {
    /// What is found in the newest in which anything is.
    pub(crate) fn find<R>(&self, mut look: impl FnMut(&T) -> Option<R>) -> Option<R> {
        let kept = self.0.lock();
        kept.made.iter().rev().find_map(|(_, made)| look(made))
    }

    /// Keeps one more, which keeps so many bytes alive, in place of the oldest ones. One that is larger than all together
    /// may be is not kept.
    pub(crate) fn keep(&self, made: T, bytes: usize) {
        if bytes > MOST_BYTES {
            return;
        }
        // Freed after the lock is let go.
        let mut dropped = Vec::new();
        let mut kept = self.0.lock();
        while kept.made.len() == KEPT || kept.bytes + bytes > MOST_BYTES {
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

    // Issue 9, point 9.
    #[test]
    fn the_oldest_go_when_there_are_too_many_or_they_are_too_large() {
        let recent = Recent::default();
        for number in 0..=KEPT as u32 {
            recent.keep(number, 1);
        }
        assert_eq!(kept(&recent), (1..=KEPT as u32).collect::<Vec<_>>());
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
