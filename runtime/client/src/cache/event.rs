//! `Event`: what a subscriber is told, and how pending events of one object are combined; `Listener`: a reader of changes.

use std::sync::Arc;

use super::object::CacheObject;
use super::store::{Change, Observation};
use super::subscriber::{Lag, SubscriberMetrics};

/// A change of a cache, as a subscriber sees it. When it is delivered, the lister already shows it, or a later state.
#[derive(Debug)]
pub enum Event<T> {
    /// An object that the subscriber did not know.
    Added {
        /// The object.
        object: Arc<T>,
        /// Whether it was there when the subscriber joined, or in the first state of the cache.
        initial: bool,
    },
    /// A later state of an object. States between the two are skipped if the subscriber was slow.
    Updated {
        /// The last state that the subscriber saw.
        old: Arc<T>,
        /// The state now.
        new: Arc<T>,
    },
    /// The object is as it was; sent from time to time to subscribers that asked for it.
    Resync {
        /// The object.
        object: Arc<T>,
    },
    /// An object that the subscriber knew is gone.
    Deleted {
        /// Its last known state.
        last: Arc<T>,
        /// How the deletion was noticed.
        observed: Observation,
    },
    /// All initial objects were delivered. Sent once.
    Synced,
    /// The subscriber asked for every event and was too slow: some were combined with later ones of the same object. Sent
    /// before the next event.
    Lagged {
        /// The number of events that are missing.
        skipped: u64,
    },
}

impl<T> Clone for Event<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, initial } => Self::Added {
                object: Arc::clone(object),
                initial: *initial,
            },
            Self::Updated { old, new } => Self::Updated {
                old: Arc::clone(old),
                new: Arc::clone(new),
            },
            Self::Resync { object } => Self::Resync {
                object: Arc::clone(object),
            },
            Self::Deleted { last, observed } => Self::Deleted {
                last: Arc::clone(last),
                observed: *observed,
            },
            Self::Synced => Self::Synced,
            Self::Lagged { skipped } => Self::Lagged { skipped: *skipped },
        }
    }
}

impl<T> Event<T> {
    /// The object that the event is about, in its last state; `None` for [`Event::Synced`] and [`Event::Lagged`].
    pub fn object(&self) -> Option<&Arc<T>> {
        match self {
            Self::Added { object, .. } | Self::Resync { object } => Some(object),
            Self::Updated { new, .. } => Some(new),
            Self::Deleted { last, .. } => Some(last),
            Self::Synced | Self::Lagged { .. } => None,
        }
    }
}

/// Reads all changes of a store, in their order. It is called with the hub locked, so it must not wait.
pub(super) trait Listener<T>: Send {
    /// Changes were made; `is_initial` if they are the first complete state. The result is a lag of the reader to report.
    fn on_changes(&mut self, changes: &[Change<T>], is_initial: bool) -> Option<Lag>;
    /// No changes follow.
    fn close(&mut self);
    /// What waits for the reader, if it has a queue.
    fn metrics(&self) -> Option<SubscriberMetrics>;
}

/// The events of one object that wait for a subscriber.
#[derive(Debug)]
pub(super) enum Pending<T> {
    Added {
        object: Arc<T>,
        initial: bool,
    },
    Updated {
        old: Arc<T>,
        new: Arc<T>,
    },
    Resync {
        object: Arc<T>,
    },
    Deleted {
        last: Arc<T>,
        observed: Observation,
    },
    /// A deletion, and then another object, or the same one selected again.
    Replaced {
        last: Arc<T>,
        observed: Observation,
        object: Arc<T>,
    },
}

/// The object that a change is about.
pub(super) fn object_of<T>(change: &Change<T>) -> &Arc<T> {
    match change {
        Change::Added(new) | Change::Updated { new, .. } => new,
        Change::Deleted { last, .. } => last,
    }
}

impl<T: CacheObject> Pending<T> {
    /// The events that are pending after one more change; `None` if the subscriber needs none.
    pub(super) fn merge(
        pending: Option<Self>,
        change: &Change<T>,
        is_initial: bool,
    ) -> Option<Self> {
        match change {
            Change::Added(new) => Some(Self::add(pending, Arc::clone(new), is_initial)),
            Change::Updated { old, new } => Some(Self::update(pending, old, Arc::clone(new))),
            Change::Deleted { last, observed } => {
                Self::delete(pending, Arc::clone(last), *observed)
            }
        }
    }

    fn add(pending: Option<Self>, object: Arc<T>, initial: bool) -> Self {
        match pending {
            Some(Self::Deleted { last, observed } | Self::Replaced { last, observed, .. }) => {
                Self::Replaced {
                    last,
                    observed,
                    object,
                }
            }
            _ => Self::Added { object, initial },
        }
    }

    fn update(pending: Option<Self>, old: &Arc<T>, new: Arc<T>) -> Self {
        match pending {
            Some(Self::Added { initial, .. }) => Self::Added {
                object: new,
                initial,
            },
            Some(Self::Updated { old, .. }) => Self::Updated { old, new },
            Some(Self::Deleted { last, observed } | Self::Replaced { last, observed, .. }) => {
                Self::Replaced {
                    last,
                    observed,
                    object: new,
                }
            }
            Some(Self::Resync { .. }) | None => Self::Updated {
                old: Arc::clone(old),
                new,
            },
        }
    }

    fn delete(pending: Option<Self>, last: Arc<T>, observed: Observation) -> Option<Self> {
        match pending {
            // The subscriber never saw it.
            Some(Self::Added { .. }) => None,
            // It saw the first one of the two.
            Some(Self::Deleted { last, observed } | Self::Replaced { last, observed, .. }) => {
                Some(Self::Deleted { last, observed })
            }
            Some(Self::Updated { .. } | Self::Resync { .. }) | None => {
                Some(Self::Deleted { last, observed })
            }
        }
    }

    /// The number of events that it is.
    pub(super) fn event_count(&self) -> u64 {
        match self {
            Self::Replaced { .. } => 2,
            _ => 1,
        }
    }

    /// The first event, and what remains pending.
    pub(super) fn split(self) -> (Event<T>, Option<Self>) {
        let event = match self {
            Self::Added { object, initial } => Event::Added { object, initial },
            Self::Updated { old, new } => Event::Updated { old, new },
            Self::Resync { object } => Event::Resync { object },
            Self::Deleted { last, observed } => Event::Deleted { last, observed },
            Self::Replaced {
                last,
                observed,
                object,
            } => {
                let rest = Self::Added {
                    object,
                    initial: false,
                };
                return (Event::Deleted { last, observed }, Some(rest));
            }
        };
        (event, None)
    }
}
