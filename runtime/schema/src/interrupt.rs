//! Ends work on a document that is not wanted any more: past a deadline, or after its client has left.
//!
//! Work runs within the scope of an [`Interrupt`]. What loops over values asks [`is_interrupted`] for each of them; that counts
//! down a number of the thread, and reads the clock once in a thousand times. What is interrupted returns soon, with an error or
//! with a part of its result. An interrupt is never reset: the owner of the scope asks before it uses a result, and what is shared
//! with others is made by [`apart`].

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Steps between two looks at the clock; all of them take well under a millisecond.
const INTERVAL: u32 = 1024;

thread_local! {
    /// Steps until the interrupt of the scope is asked again.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    static SCOPE: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// Whether the work of this thread is not wanted any more. To be asked for each value, or about as often.
#[inline]
pub fn is_interrupted() -> bool {
    spend(1)
}

/// As [`is_interrupted`], and looks at the clock. To be asked between the steps of work.
pub fn is_set() -> bool {
    LEFT.with(ask)
}

/// As [`is_interrupted`], after work on as many values.
#[inline]
pub fn spend(steps: u32) -> bool {
    LEFT.with(|left| match left.get().checked_sub(steps) {
        Some(rest) => {
            left.set(rest);
            false
        }
        None => ask(left),
    })
}

#[cold]
fn ask(left: &Cell<u32>) -> bool {
    let is_set = SCOPE.with_borrow(|scope| scope.as_ref().is_some_and(Interrupt::is_set));
    left.set(if is_set { 0 } else { INTERVAL });
    is_set
}

/// The interrupt of the work of this thread.
pub fn current() -> Option<Interrupt> {
    SCOPE.with_borrow(Clone::clone)
}

/// Runs work that is not interrupted, because others use its result.
pub fn apart<T>(work: impl FnOnce() -> T) -> T {
    within(None, work)
}

/// Runs work within the scope of an interrupt, such as that of another thread.
pub fn within<T>(interrupt: Option<Interrupt>, work: impl FnOnce() -> T) -> T {
    let _guard = ScopeGuard::new(interrupt);
    work()
}

/// Ends work at a deadline, or when it is set. Clones are the same interrupt.
///
/// ```
/// use apiloom_schema::interrupt::{Interrupt, is_interrupted};
/// let interrupt = Interrupt::default();
/// assert!(!interrupt.scope(is_interrupted));
/// interrupt.set();
/// assert!(interrupt.scope(is_interrupted) && !is_interrupted());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug)]
struct State {
    is_set: AtomicBool,
    /// In nanoseconds after [`START`].
    deadline: AtomicU64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            is_set: AtomicBool::new(false),
            deadline: AtomicU64::new(u64::MAX),
        }
    }
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A moment as it is kept in an interrupt.
fn nanoseconds(at: Instant) -> u64 {
    let after = at.saturating_duration_since(*START);
    after.as_nanos().try_into().unwrap_or(u64::MAX)
}

impl Interrupt {
    /// Interrupts the work after this time at the latest, by the clock of the machine: work takes real time, also where timers
    /// have another clock.
    pub fn set_after(&self, time: Duration) {
        let deadline = Instant::now().checked_add(time);
        let deadline = deadline.map_or(u64::MAX, nanoseconds);
        self.0.deadline.fetch_min(deadline, Ordering::Relaxed);
    }

    /// Interrupts the work.
    pub fn set(&self) {
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether the work is interrupted.
    pub fn is_set(&self) -> bool {
        let state = &*self.0;
        if state.is_set.load(Ordering::Relaxed) {
            return true;
        }
        let deadline = state.deadline.load(Ordering::Relaxed);
        let is_over = deadline < u64::MAX && deadline <= nanoseconds(Instant::now());
        if is_over {
            self.set();
        }
        is_over
    }

    /// Runs work that this interrupts.
    pub fn scope<T>(&self, work: impl FnOnce() -> T) -> T {
        within(Some(self.clone()), work)
    }
}

/// The scope of an interrupt, which ends when this is dropped.
struct ScopeGuard {
    outer: Option<Interrupt>,
}

impl ScopeGuard {
    fn new(interrupt: Option<Interrupt>) -> Self {
        LEFT.set(0);
        let outer = SCOPE.replace(interrupt);
        Self { outer }
    }
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        LEFT.set(0);
        SCOPE.set(self.outer.take());
    }
}

#[cfg(test)]
mod tests;
