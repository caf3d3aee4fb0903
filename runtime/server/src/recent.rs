//! What was made lately, for those who need the same at about the same time.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// How many are kept: more than watchers are apart from each other, or clients page at a time.
pub(crate) const KEPT: usize = 64;

/// The last things that were made, newest last. Whoever finds none makes it without the lock: two may do it at the same
/// time, and both be right.
#[derive(Debug)]
pub(crate) struct Recent<T>(Mutex<VecDeque<T>>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Recent<T> {
    /// What is found in the newest in which anything is.
    pub(crate) fn find<R>(&self, look: impl FnMut(&T) -> Option<R>) -> Option<R> {
        self.0.lock().iter().rev().find_map(look)
    }

    /// Keeps one more, in place of the oldest.
    pub(crate) fn keep(&self, made: T) {
        let mut kept = self.0.lock();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(made);
    }
}
