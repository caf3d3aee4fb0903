//! Controllers: sources of changes, a work queue, and workers that call a reconcile function.

mod action;
mod controller;
mod informers;
mod metrics;
mod running;
mod worker;

pub use action::{Action, Context, ReconcileError, Request};
pub use controller::{Controller, Enqueue};
pub use informers::Owner;
pub use metrics::ControllerMetrics;
pub use running::{NotIdle, RunningController};

#[cfg(test)]
mod tests;
