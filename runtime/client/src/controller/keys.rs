//! Keys of changed objects on their way from a cache into a work queue.

use std::time::Duration;

use super::queue::{Priority, WorkQueue};
use crate::cache::{CacheObject, KeyEvent, KeySubscription, ObjectKey};

impl WorkQueue<ObjectKey> {
    /// Queues the keys of a subscription until its informer is shut down, or the queue: those of objects that existed
    /// before with low priority.
    ///
    /// ```no_run
    /// # use apiloom_client::cache::{CacheObject, Informer};
    /// # use apiloom_client::controller::WorkQueue;
    /// # fn example<Pod: CacheObject>(pods: &Informer<Pod>) {
    /// let queue = WorkQueue::new();
    /// let keys = pods.subscribe().keys_only();
    /// tokio::spawn({
    ///     let queue = queue.clone();
    ///     async move { queue.feed(keys).await }
    /// });
    /// # }
    /// ```
    pub async fn feed<T: CacheObject>(&self, mut keys: KeySubscription<T>) {
        loop {
            let event = tokio::select! {
                event = keys.next() => event,
                () = self.closed() => return,
            };
            let Some(event) = event else {
                return;
            };
            if let KeyEvent::Changed { key, initial } = event {
                let priority = if initial {
                    Priority::Low
                } else {
                    Priority::Normal
                };
                self.add_with(key, priority, Duration::ZERO);
            }
            // Keys that are ready are read without waiting.
            tokio::task::coop::consume_budget().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Informer;
    use crate::cache::test_support::{Pod, apply, informer, pod};

    #[tokio::test(start_paused = true)]
    async fn changed_objects_are_queued_until_the_queue_or_the_informer_ends() {
        let pods: Informer<Pod> = informer();
        apply(&pods, vec![pod("a", 1).put()]);
        let queue = WorkQueue::new();
        let feed = |keys| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.feed(keys).await })
        };
        let first = feed(pods.subscribe().keys_only());
        let item = queue.next().await.expect("the queue is open");
        assert_eq!((&*item.key().name, item.priority()), ("a", Priority::Low));
        item.succeed();
        apply(&pods, vec![pod("a", 2).put(), pod("b", 3).put()]);
        for name in ["a", "b"] {
            let item = queue.next().await.expect("the queue is open");
            assert_eq!(
                (&*item.key().name, item.priority()),
                (name, Priority::Normal)
            );
            item.succeed();
        }
        pods.shutdown().await;
        first.await.expect("no panic");

        let pods = informer();
        let second = feed(pods.subscribe().keys_only());
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        queue.shutdown();
        second.await.expect("no panic");
    }
}
