//! Tests of the work queue with paused time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, advance, sleep, timeout};

use super::{Backoff, Priority, QueueMetrics, WorkQueue, WorkQueueConfig};
use crate::metrics::Registry;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The key that is handed out now; `None` if none is.
async fn take(queue: &WorkQueue<&'static str>) -> Option<&'static str> {
    let item = timeout(Duration::ZERO, queue.next()).await.ok()??;
    let key = *item.key();
    item.succeed();
    Some(key)
}

/// All keys that are handed out now, in order.
async fn take_all(queue: &WorkQueue<&'static str>) -> Vec<&'static str> {
    let mut keys = Vec::new();
    while let Some(key) = take(queue).await {
        keys.push(key);
    }
    keys
}

#[tokio::test(start_paused = true)]
async fn keys_go_out_in_the_order_of_their_addition_and_once() {
    let queue = WorkQueue::new();
    for key in ["b", "a", "b", "c", "a"] {
        queue.add(key);
    }
    assert_eq!(take_all(&queue).await, ["b", "a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_goes_out_when_it_is_due() {
    let queue = WorkQueue::new();
    queue.add_after("a", 10 * MS);
    queue.add_after("b", 5 * MS);
    assert_eq!(take(&queue).await, None);
    let start = Instant::now();
    assert_eq!(*queue.next().await.unwrap().key(), "b");
    assert_eq!(start.elapsed(), 5 * MS);
    assert_eq!(*queue.next().await.unwrap().key(), "a");
    assert_eq!(start.elapsed(), 10 * MS);
}

#[tokio::test(start_paused = true)]
async fn the_earlier_time_and_the_higher_priority_win() {
    let queue = WorkQueue::new();
    queue.add_with("a", Priority::Low, 10 * SECOND);
    queue.add("b");
    queue.add_with("a", Priority::High, SECOND);
    queue.add_with("a", Priority::Lowest, 20 * SECOND);
    advance(SECOND).await;
    queue.add("c");
    assert_eq!(take_all(&queue).await, ["a", "b", "c"]);
    advance(30 * SECOND).await;
    assert_eq!(take(&queue).await, None);
}

#[tokio::test(start_paused = true)]
async fn trap_32_a_key_added_while_it_is_processed_runs_again_once() {
    let queue = WorkQueue::new();
    queue.add("a");
    let item = queue.next().await.unwrap();
    queue.add("a");
    queue.add("a");
    queue.add_after("a", SECOND);
    assert_eq!(take(&queue).await, None, "a second worker got the key");
    item.succeed();
    assert_eq!(take(&queue).await, Some("a"));
    advance(2 * SECOND).await;
    assert_eq!(take(&queue).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn trap_32_no_two_workers_have_one_key() {
    const KEYS: usize = 5;
    const ADDITIONS: usize = 4_000;
    let queue = WorkQueue::<usize>::new();
    let held: Arc<[AtomicUsize; KEYS]> = Arc::default();
    // What the last run of each key saw, to find an addition that no run followed.
    let latest: Arc<[AtomicUsize; KEYS]> = Arc::default();
    let seen: Arc<[AtomicUsize; KEYS]> = Arc::default();
    let mut workers = JoinSet::new();
    for _ in 0..8 {
        let (queue, held) = (queue.clone(), Arc::clone(&held));
        let (latest, seen) = (Arc::clone(&latest), Arc::clone(&seen));
        workers.spawn(async move {
            while let Some(item) = queue.next().await {
                let key = *item.key();
                assert_eq!(held[key].fetch_add(1, Ordering::SeqCst), 0);
                let newest = latest[key].load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                seen[key].store(newest, Ordering::SeqCst);
                held[key].fetch_sub(1, Ordering::SeqCst);
                item.succeed();
            }
        });
    }
    for number in 0..ADDITIONS {
        let key = number % KEYS;
        latest[key].store(number, Ordering::SeqCst);
        queue.add(key);
        if number % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    timeout(60 * SECOND, queue.drain()).await.expect("drained");
    while let Some(worker) = workers.join_next().await {
        worker.expect("no worker panics");
    }
    for key in 0..KEYS {
        let last = |of: &[AtomicUsize; KEYS]| of[key].load(Ordering::SeqCst);
        assert_eq!(
            last(&seen),
            last(&latest),
            "the last addition of {key} was lost"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn trap_32_drain_waits_for_workers_and_drops_delayed_keys() {
    let queue = WorkQueue::new();
    queue.add("busy");
    let item = queue.next().await.unwrap();
    queue.add("ready");
    queue.add_after("delayed", SECOND);
    queue.add("busy");
    let draining = tokio::spawn({
        let queue = queue.clone();
        async move { queue.drain().await }
    });
    tokio::task::yield_now().await;
    queue.add("late");
    assert_eq!(take(&queue).await, Some("ready"));
    sleep(10 * SECOND).await;
    assert!(!draining.is_finished());
    // It was added before the drain began, so it runs again.
    item.retry();
    assert!(!draining.is_finished());
    assert_eq!(*queue.next().await.unwrap().key(), "busy");
    draining.await.unwrap();
    assert!(queue.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn drain_ends_all_waiting_workers() {
    let queue = WorkQueue::<u8>::new();
    let mut workers = JoinSet::new();
    for _ in 0..3 {
        let queue = queue.clone();
        workers.spawn(async move { assert!(queue.next().await.is_none()) });
    }
    tokio::task::yield_now().await;
    queue.drain().await;
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_a_drain_and_drops_ready_keys() {
    let queue = WorkQueue::new();
    queue.add("a");
    queue.add("b");
    let item = queue.next().await.unwrap();
    let draining = queue.drain();
    tokio::pin!(draining);
    assert!(timeout(SECOND, &mut draining).await.is_err());
    queue.shutdown();
    assert!(queue.next().await.is_none());
    item.succeed();
    draining.await;
}

/// One worker needs a second for an item, and a new item of normal priority comes every second: it is never idle.
#[tokio::test(start_paused = true)]
async fn trap_33_low_keys_run_under_a_steady_load_of_normal_ones() {
    let queue = WorkQueue::new();
    let start = Instant::now();
    for key in [1_000_000, 1_000_001, 1_000_002] {
        queue.add_with(key, Priority::Low, Duration::ZERO);
    }
    queue.add_with(2_000_000, Priority::Lowest, Duration::ZERO);
    queue.add(0);
    let mut low = Vec::new();
    for number in 1..100 {
        let item = queue.next().await.unwrap();
        if *item.key() >= 1_000_000 {
            low.push((*item.key(), start.elapsed().as_secs()));
        }
        sleep(SECOND).await;
        queue.add(number);
        item.succeed();
    }
    // Low is as urgent as normal after 30 s. Lowest is after 60 s, when three normal ones are behind by the low ones.
    assert_eq!(
        low,
        [
            (1_000_000, 30),
            (1_000_001, 31),
            (1_000_002, 32),
            (2_000_000, 63)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_higher_priority_goes_first() {
    let queue = WorkQueue::new();
    let names = ["lowest", "low", "normal", "high", "highest"];
    for (priority, name) in Priority::ALL.into_iter().zip(names) {
        queue.add_with(name, priority, Duration::ZERO);
    }
    let order = ["highest", "high", "normal", "low", "lowest"];
    assert_eq!(take_all(&queue).await, order);
}

#[tokio::test(start_paused = true)]
async fn trap_34_triggers_within_the_delay_do_not_raise_the_failures() {
    let queue = WorkQueue::with_config(WorkQueueConfig {
        backoff: Backoff {
            base: SECOND,
            max: 100 * SECOND,
        },
        ..WorkQueueConfig::default()
    });
    let start = Instant::now();
    queue.add("a");
    queue.next().await.unwrap().retry();
    assert_eq!(queue.failures(&"a"), 1);
    for _ in 0..20 {
        queue.add("a");
        queue.next().await.unwrap().retry();
        assert_eq!(queue.failures(&"a"), 1);
    }
    // The attempt that the first failure asked for comes when it was due, and counts.
    let item = queue.next().await.unwrap();
    assert_eq!((start.elapsed(), item.failures()), (SECOND, 1));
    item.retry();
    // A triggered attempt that began before the delay had passed does not count when it ends later.
    queue.add("a");
    let item = queue.next().await.unwrap();
    sleep(5 * SECOND).await;
    item.retry();
    assert_eq!(queue.failures(&"a"), 2);
    let item = queue.next().await.unwrap();
    assert_eq!(start.elapsed(), 6 * SECOND);
    item.retry();
    assert_eq!(queue.failures(&"a"), 3);
    queue.next().await.unwrap().succeed();
    assert_eq!(queue.failures(&"a"), 0);
    assert_eq!(start.elapsed(), 10 * SECOND);
}

#[test]
fn delays_double_up_to_the_limit() {
    let delays = |failures| Backoff::default().delay(failures);
    assert_eq!(delays(0), Duration::ZERO);
    assert_eq!(delays(1), 5 * MS);
    assert_eq!(delays(2), 10 * MS);
    assert_eq!(delays(17), 327_680 * MS);
    assert_eq!(delays(18), 655_360 * MS);
    for failures in [19, 20, 32, 33, 34, 64, u32::MAX] {
        assert_eq!(delays(failures), 1000 * SECOND, "{failures}");
    }
}

#[tokio::test(start_paused = true)]
async fn delays_of_any_length_are_accepted() {
    let config = WorkQueueConfig {
        backoff: Backoff {
            base: Duration::MAX,
            max: Duration::MAX,
        },
        ageing: Duration::MAX,
    };
    let queue = WorkQueue::with_config(config);
    queue.add_after("a", Duration::MAX);
    queue.add("a");
    queue.next().await.unwrap().retry();
    queue.add("a");
    queue.next().await.unwrap().requeue_after(Duration::MAX);
    assert_eq!(take(&queue).await, None);
    queue.wait_idle(SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_item_is_given_back_with_its_failures() {
    let queue = WorkQueue::new();
    queue.add("a");
    queue.next().await.unwrap().retry();
    let item = queue.next().await.unwrap();
    queue.add("a");
    drop(item);
    let item = queue.next().await.unwrap();
    assert_eq!(item.failures(), 1);
    item.postpone(SECOND);
    let item = queue.next().await.unwrap();
    assert_eq!(item.failures(), 1);
    item.requeue_after(SECOND);
    assert_eq!(queue.next().await.unwrap().failures(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_loses_no_key() {
    let queue = WorkQueue::new();
    let order = Arc::new(Mutex::new(Vec::new()));
    let worker = tokio::spawn({
        let (queue, order) = (queue.clone(), Arc::clone(&order));
        async move {
            while let Some(item) = queue.next().await {
                order.lock().unwrap().push(*item.key());
                item.succeed();
            }
        }
    });
    for key in 0..10 {
        // This wait takes the place of the worker, and ends without a key or with one that it gives back.
        let other = timeout(Duration::ZERO, queue.next()).await;
        assert!(other.is_err());
        queue.add_after(key, MS);
    }
    queue.wait_idle(SECOND).await;
    queue.drain().await;
    worker.await.unwrap();
    assert_eq!(*order.lock().unwrap(), (0..10).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn metrics_have_the_names_and_the_meaning_of_client_go() {
    let queue = WorkQueue::new();
    queue.add("a");
    queue.add("a");
    queue.add("b");
    queue.add_after("c", 5 * SECOND);
    advance(SECOND).await;
    let item = queue.next().await.unwrap();
    queue.add("a");
    advance(2 * SECOND).await;
    let expected = QueueMetrics {
        depth: 1,
        adds: 2,
        unfinished_work: 2 * SECOND,
        longest_running: 2 * SECOND,
        ..queue.metrics()
    };
    assert_eq!(queue.metrics(), expected);
    item.retry();
    advance(2 * SECOND).await;
    let metrics = queue.metrics();
    assert_eq!((metrics.depth, metrics.adds, metrics.retries), (3, 4, 1));
    assert_eq!(metrics.work_duration.count(), 1);
    assert_eq!(metrics.work_duration.sum(), 2 * SECOND);
    assert_eq!(metrics.queue_duration.sum(), SECOND);
    let registry = Registry::new();
    queue.register_metrics(&registry, "flunder");
    let text = registry.text();
    for line in [
        "# TYPE workqueue_depth gauge",
        "workqueue_depth{name=\"flunder\"} 3",
        "workqueue_adds_total{name=\"flunder\"} 4",
        "workqueue_retries_total{name=\"flunder\"} 1",
        "workqueue_unfinished_work_seconds{name=\"flunder\"} 0",
        "workqueue_longest_running_processor_seconds{name=\"flunder\"} 0",
        "workqueue_work_duration_seconds_bucket{name=\"flunder\",le=\"1\"} 0",
        "workqueue_work_duration_seconds_bucket{name=\"flunder\",le=\"10\"} 1",
        "workqueue_work_duration_seconds_bucket{name=\"flunder\",le=\"+Inf\"} 1",
        "workqueue_work_duration_seconds_sum{name=\"flunder\"} 2",
        "workqueue_queue_duration_seconds_count{name=\"flunder\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    drop(queue);
    assert_eq!(registry.text(), "");
}
