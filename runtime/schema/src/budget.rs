//! A bound in bytes over what many owners keep, such as the compiled patterns of all schemas.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A bound in bytes. What is kept within it holds a [`Share`].
#[derive(Debug)]
pub(crate) struct Budget {
    most: AtomicUsize,
    used: AtomicUsize,
}

impl Budget {
    pub(crate) const fn new(most: usize) -> Self {
        let [most, used] = [AtomicUsize::new(most), AtomicUsize::new(0)];
        Self { most, used }
    }

    /// Bounds what is taken from now on. More that was taken before stays until it is given back.
    pub(crate) fn bound(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// A share of no bytes.
    pub(crate) fn share(&'static self) -> Share {
        Share {
            budget: self,
            bytes: 0,
        }
    }

    /// Takes bytes; whether there was room for them. If not, nothing is taken.
    fn take(&self, bytes: usize) -> bool {
        let most = self.most.load(Ordering::Relaxed);
        let sum = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= most);
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        taken.is_ok()
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Bytes of a budget, which are given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: &'static Budget,
    bytes: usize,
}

impl Share {
    /// Takes what is missing for as many bytes; a larger share stays as it is. Whether there was room. If not, the share stays as it is.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let missing = bytes.saturating_sub(self.bytes);
        let has_room = missing == 0 || self.budget.take(missing);
        if has_room {
            self.bytes += missing;
        }
        has_room
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_within_the_budget_and_are_given_back() {
        static TEN: Budget = Budget::new(10);
        let [mut first, mut second] = [TEN.share(), TEN.share()];
        assert!(first.grow_to(6) && first.grow_to(4) && second.grow_to(4));
        assert_eq!(TEN.used(), 10);
        assert!(!second.grow_to(5) && !TEN.share().grow_to(usize::MAX));
        assert_eq!((TEN.used(), second.bytes()), (10, 4));
        drop(first);
        assert!(second.grow_to(10));
        TEN.bound(4);
        assert!(second.grow_to(10) && !second.grow_to(11) && !TEN.share().grow_to(1));
        drop(second);
        assert!(TEN.share().grow_to(4) && !TEN.share().grow_to(5));
        assert_eq!(TEN.used(), 0);
    }
}
