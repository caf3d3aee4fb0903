//! The locks and atomics that the writer, readers and watchers of a cache share. In this crate's own tests each use is
//! a scheduling point of the model checker; elsewhere they are plain re-exports.

#[cfg(not(test))]
pub(super) use parking_lot::{Mutex, RwLock};
#[cfg(not(test))]
pub(super) use std::sync::atomic::AtomicU64;

#[cfg(test)]
pub(super) use modelled::{AtomicU64, Mutex, RwLock, as_model};

#[cfg(test)]
mod modelled {
    use std::cell::Cell;
    use std::sync::atomic;

    use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    thread_local! {
        /// Whether this thread runs a model.
        static IS_MODEL: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs a model on this thread: each use of this module may then switch to another thread of the model.
    pub(crate) fn as_model(run: impl FnOnce()) {
        IS_MODEL.set(true);
        run();
        IS_MODEL.set(false);
    }

    /// A scheduling point: another thread of the model may run.
    fn step() {
        if IS_MODEL.get() {
            shuttle::thread::yield_now();
        }
    }

    /// Polls until it succeeds: the threads of a model share one thread of the operating system, which must not block.
    fn wait_for<T>(attempt: impl Fn() -> Option<T>, block: impl FnOnce() -> T) -> T {
        step();
        if !IS_MODEL.get() {
            return block();
        }
        loop {
            match attempt() {
                Some(done) => return done,
                None => step(),
            }
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            wait_for(|| self.0.try_lock(), || self.0.lock())
        }
    }

    #[derive(Debug)]
    pub(crate) struct RwLock<T>(parking_lot::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(parking_lot::RwLock::new(value))
        }
        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            wait_for(|| self.0.try_read(), || self.0.read())
        }
        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            wait_for(|| self.0.try_write(), || self.0.write())
        }
    }

    #[derive(Debug)]
    pub(crate) struct AtomicU64(atomic::AtomicU64);

    impl AtomicU64 {
        pub(crate) const fn new(value: u64) -> Self {
            Self(atomic::AtomicU64::new(value))
        }
        pub(crate) fn load(&self, order: atomic::Ordering) -> u64 {
            step();
            self.0.load(order)
        }
        pub(crate) fn swap(&self, value: u64, order: atomic::Ordering) -> u64 {
            step();
            self.0.swap(value, order)
        }
        pub(crate) fn fetch_add(&self, value: u64, order: atomic::Ordering) -> u64 {
            step();
            self.0.fetch_add(value, order)
        }
        pub(crate) fn fetch_min(&self, value: u64, order: atomic::Ordering) -> u64 {
            step();
            self.0.fetch_min(value, order)
        }
    }
}
