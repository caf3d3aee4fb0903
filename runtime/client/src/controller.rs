//! Controllers: a work queue, workers that reconcile its keys, leader election, finalizers and events.
//!
//! Nothing here depends on a transport: what talks to a server does so by a small trait.

mod queue;

pub use queue::{
    Backoff, DurationHistogram, Priority, QueueMetrics, WorkItem, WorkQueue, WorkQueueConfig,
};
