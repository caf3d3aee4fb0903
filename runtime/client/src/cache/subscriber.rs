//! How a subscriber is doing: what waits for it, and for how long.

use std::time::Duration;

/// The metrics of one subscriber at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriberMetrics {
    /// Its name; empty unless it was given one.
    pub name: String,
    /// The number of events, or keys, that wait for it.
    pub waiting: usize,
    /// How long the oldest of them has waited; zero if there is none.
    pub oldest: Duration,
    /// The number of events, or keys, that were delivered.
    pub delivered: u64,
    /// The number of events that it did not get, because they were combined with later ones of the same object.
    pub combined: u64,
}

/// A subscriber that wants every event does not keep up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the subscriber {subscriber:?} is slow: {waiting} events wait, the oldest of them for {oldest:?}"
)]
pub struct Lag {
    /// Its name; empty unless it was given one.
    pub subscriber: String,
    /// The number of events that wait for it.
    pub waiting: usize,
    /// How long the oldest of them has waited.
    pub oldest: Duration,
}
