//! A signal that work should stop.

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::watch;

/// A signal that work should stop, given once. Clones share it; a child also gets the signal of its parent.
#[derive(Clone)]
pub struct Cancel(Arc<Signal>);

struct Signal {
    own: watch::Sender<bool>,
    parent: Option<Cancel>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    /// A signal that is not given yet.
    pub fn new() -> Self {
        Self::with_parent(None)
    }

    fn with_parent(parent: Option<Self>) -> Self {
        let own = watch::Sender::new(false);
        Self(Arc::new(Signal { own, parent }))
    }

    /// A signal that is given with this one, or alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self::with_parent(Some(self.clone()))
    }

    /// Gives the signal to this one and its children.
    pub fn cancel(&self) {
        self.0.own.send_replace(true);
    }

    /// Whether the signal was given.
    pub fn is_cancelled(&self) -> bool {
        let parent = self.0.parent.as_ref();
        *self.0.own.borrow() || parent.is_some_and(Self::is_cancelled)
    }

    /// Waits for the signal.
    pub async fn cancelled(&self) {
        self.wait().await;
    }

    /// Boxed, because it waits for the parent by itself.
    fn wait(&self) -> BoxFuture<'_, ()> {
        self.wait_for_either().boxed()
    }

    async fn wait_for_either(&self) {
        let mut own = self.0.own.subscribe();
        // The sender lives as long as `self`, so the wait ends by the signal alone.
        let own = own.wait_for(|is_given| *is_given);
        let parent: BoxFuture<'_, ()> = match &self.0.parent {
            Some(parent) => parent.wait(),
            None => std::future::pending().boxed(),
        };
        tokio::select! {
            _ = own => {}
            () = parent => {}
        }
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_child_gets_the_signal_of_its_parents_and_not_the_reverse() {
        let parent = Cancel::new();
        let (child, other) = (parent.child().child(), parent.child());
        other.cancel();
        other.cancelled().await;
        assert!(!parent.is_cancelled() && !child.is_cancelled());
        let waiting = tokio::spawn({
            let child = child.clone();
            async move { child.cancelled().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        parent.cancel();
        waiting.await.unwrap();
        assert!(child.is_cancelled());
    }
}
