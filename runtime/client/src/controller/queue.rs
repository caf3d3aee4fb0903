//! A work queue: hands out each key to one worker at a time, after its delay, the most urgent first.

mod backoff;
mod metrics;
mod priority;
mod shared;
mod state;
mod time;

pub use backoff::Backoff;
pub use metrics::QueueMetrics;
pub use priority::Priority;
pub use shared::{WorkItem, WorkQueue};
pub use state::WorkQueueConfig;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
