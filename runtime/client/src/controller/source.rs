//! The changes from which a controller gets its keys.

use std::sync::Arc;

use futures_util::future::BoxFuture;

/// A change of an object, or a reason to look at it again.
#[derive(Debug)]
pub enum Change<T> {
    /// The object is new to the source.
    Added {
        /// Its state.
        object: Arc<T>,
        /// Whether it existed when the subscription began.
        is_initial: bool,
    },
    /// The object changed.
    Updated {
        /// Its state before.
        old: Arc<T>,
        /// Its state now.
        new: Arc<T>,
    },
    /// The object did not change; the source shows all its objects once in a while.
    Resync {
        /// Its state.
        object: Arc<T>,
    },
    /// The object does not exist any more, or is no longer selected.
    Deleted {
        /// The last state that the source knows.
        last: Arc<T>,
    },
}

impl<T> Clone for Change<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, is_initial } => Self::Added {
                object: Arc::clone(object),
                is_initial: *is_initial,
            },
            Self::Updated { old, new } => Self::Updated {
                old: Arc::clone(old),
                new: Arc::clone(new),
            },
            Self::Resync { object } => Self::Resync {
                object: Arc::clone(object),
            },
            Self::Deleted { last } => Self::Deleted {
                last: Arc::clone(last),
            },
        }
    }
}

impl<T> Change<T> {
    /// The newest state of the object; the last one of a deleted object.
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Added { object, .. } | Self::Resync { object } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted { last } => last,
        }
    }

    /// The state before an update.
    pub fn old(&self) -> Option<&Arc<T>> {
        match self {
            Self::Updated { old, .. } => Some(old),
            _ => None,
        }
    }

    /// Whether no object changed: it existed before, or is only shown again.
    pub fn is_background(&self) -> bool {
        matches!(
            self,
            Self::Resync { .. }
                | Self::Added {
                    is_initial: true,
                    ..
                }
        )
    }
}

/// Takes changes. It must return soon, and must not block.
pub type ChangeHandler<T> = Box<dyn Fn(Change<T>) + Send + Sync>;

/// A source of changes, such as an informer.
pub trait ChangeSource: Send + Sync {
    /// The type of the objects.
    type Object: Send + Sync + 'static;

    /// Begins to call `handler`: with each object that exists, as added and initial, and then with each change. Calls for
    /// one object are in the order of its changes.
    fn subscribe(&self, handler: ChangeHandler<Self::Object>) -> Arc<dyn Subscription>;
}

/// Calls of a handler that a source makes. Dropping it ends them soon, [`stop`](Self::stop) at once.
pub trait Subscription: Send + Sync {
    /// Waits until the handler was called with all objects that existed at first. It may be dropped and called again.
    fn synced(&self) -> BoxFuture<'_, ()>;

    /// Ends the calls: there is none after the future is ready.
    fn stop(&self) -> BoxFuture<'_, ()>;
}
