//! `Registry`: everything that has metrics, asked when a program reads them.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::samples::Samples;

/// Something that has metrics. Implemented for functions.
pub trait Collect: Send + Sync + 'static {
    /// Reports the present values. Called for each read of a registry; it must not wait, nor use the registry.
    fn collect(&self, samples: &mut Samples);
    /// Whether there will be no values any more, so that the registry may forget it. Default: never.
    fn is_gone(&self) -> bool {
        false
    }
}

impl<F: Fn(&mut Samples) + Send + Sync + 'static> Collect for F {
    fn collect(&self, samples: &mut Samples) {
        self(samples);
    }
}

/// The metrics of a program. Clones are the same registry. It keeps nothing alive: what is dropped leaves it.
#[derive(Clone, Default)]
pub struct Registry {
    collectors: Arc<Mutex<Vec<Box<dyn Collect>>>>,
}

/// A registry that is not kept.
pub(crate) struct WeakRegistry(Weak<Mutex<Vec<Box<dyn Collect>>>>);

impl WeakRegistry {
    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds something that has metrics.
    pub fn register(&self, collector: impl Collect) {
        let mut collectors = self.collectors.lock();
        collectors.retain(|other| !other.is_gone());
        collectors.push(Box::new(collector));
    }

    /// The same registry, which is not kept.
    pub(crate) fn downgrade(&self) -> WeakRegistry {
        WeakRegistry(Arc::downgrade(&self.collectors))
    }
    /// Whether both are the same registry.
    pub(crate) fn is(&self, other: &WeakRegistry) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.collectors), other.0.as_ptr())
    }

    /// Adds the present values to others.
    pub fn collect(&self, samples: &mut Samples) {
        let mut collectors = self.collectors.lock();
        collectors.retain(|collector| !collector.is_gone());
        for collector in collectors.iter() {
            collector.collect(samples);
        }
    }

    /// The present values in Prometheus' text format, whose media type is `text/plain; version=0.0.4`.
    pub fn text(&self) -> String {
        let mut samples = Samples::default();
        self.collect(&mut samples);
        samples.text()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.collectors.lock().len();
        f.debug_struct("Registry")
            .field("collectors", &count)
            .finish()
    }
}
