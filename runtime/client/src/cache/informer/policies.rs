//! What subscribers get that want every event, or keys alone, and what is reported of slow ones.

use futures_util::FutureExt;
use parking_lot::Mutex;

use super::tests::{apply, informer, ready, replace, text};
use super::*;
use crate::cache::store::Delta;
use crate::cache::test_object::{Pod, pod};
use crate::cache::{KeyEvent, KeySubscription};

fn keys(subscription: &mut KeySubscription<Pod>) -> String {
    let mut texts = Vec::new();
    while let Some(Some(event)) = subscription.next().now_or_never() {
        texts.push(match event {
            KeyEvent::Changed { key, initial } => {
                let mark = if initial { "*" } else { "" };
                format!("{}{mark}", key.name)
            }
            KeyEvent::Synced => "synced".to_owned(),
        });
    }
    texts.join(" ")
}

#[tokio::test]
async fn every_event_is_delivered_to_a_subscriber_that_asks_for_it() {
    let (informer, _) = informer(&[]);
    replace(&informer, vec![pod("a", 1), pod("b", 1)]);
    let mut every = informer.subscribe().every_event(100);
    let changes = || {
        vec![
            pod("a", 2).put(),
            pod("a", 3).put(),
            pod("short", 4).put(),
            Delta::Delete(pod("short", 5)),
            Delta::Delete(pod("b", 6)),
            pod("b", 7).put(),
            pod("b", 8).uid("other").put(),
        ]
    };
    apply(&informer, changes());
    assert_eq!(every.metrics().waiting, 11);
    assert_eq!(
        ready(&mut every),
        "+a@1* +b@1* synced ~a@1>2 ~a@2>3 +short@4 -short@5 -b@6 +b@7 -b@7? +b@8"
    );
    let metrics = every.metrics();
    assert_eq!(
        (metrics.delivered, metrics.combined, metrics.waiting),
        (10, 0, 0)
    );
}

#[tokio::test]
async fn events_over_the_bound_are_combined_and_counted() {
    let (informer, _) = informer(&[]);
    replace(&informer, vec![pod("a", 1)]);
    let mut every = informer.subscribe().every_event(4);
    assert_eq!(ready(&mut every), "+a@1* synced");
    for version in 2..=10 {
        apply(&informer, vec![pod("a", version).put()]);
    }
    // Another object has a place of its own.
    apply(&informer, vec![pod("b", 11).put(), pod("b", 12).put()]);
    assert_eq!(every.metrics().waiting, 5);
    assert_eq!(
        ready(&mut every),
        "lagged6 ~a@1>2 ~a@2>3 ~a@3>4 ~a@4>10 +b@12"
    );
    assert_eq!(every.metrics().combined, 6);
    // It has caught up.
    apply(&informer, vec![pod("a", 13).put(), pod("a", 14).put()]);
    assert_eq!(ready(&mut every), "~a@10>13 ~a@13>14");
    // An object that comes and goes over the bound is two events that are missing.
    for version in 15..19 {
        apply(&informer, vec![pod("a", version).put()]);
    }
    apply(
        &informer,
        vec![pod("short", 20).put(), Delta::Delete(pod("short", 21))],
    );
    assert_eq!(
        ready(&mut every),
        "lagged2 ~a@14>15 ~a@15>16 ~a@16>17 ~a@17>18"
    );
}

#[tokio::test]
async fn a_bound_beside_the_newest_events_is_only_for_those_before_them() {
    let (informer, _) = informer(&[]);
    replace(&informer, vec![pod("a", 1), pod("b", 1), pod("c", 1)]);
    let mut every = informer.subscribe().every_event_beside_newest(2);
    apply(
        &informer,
        vec![pod("a", 2).put(), Delta::Delete(pod("b", 3))],
    );
    assert_eq!(ready(&mut every), "+a@1* +b@1* +c@1* synced ~a@1>2 -b@3");
    // What was read has left its place to others.
    apply(&informer, vec![pod("a", 4).put(), pod("a", 5).put()]);
    every.resync_now();
    apply(&informer, vec![pod("c", 6).put(), pod("a", 7).put()]);
    assert_eq!(ready(&mut every), "lagged1 ~a@2>4 ~a@4>7 =c@1 ~c@1>6");
    assert_eq!(every.metrics().combined, 1);
}

/// A subscriber that never reads needs memory for its bound and the objects, and no more.
#[tokio::test]
async fn trap_26_a_subscriber_that_wants_every_event_has_a_bounded_backlog() {
    let (informer, _) = informer(&[]);
    let every = informer.subscribe().every_event(50).named("slow");
    let mut other = informer.subscribe();
    for version in 1..5000 {
        let name = format!("p{}", version % 20);
        apply(&informer, vec![pod(&name, version).put()]);
        assert!(every.metrics().waiting <= 50 + 20);
        assert!(ready(&mut other).ends_with(&version.to_string()));
    }
    let metrics = informer.metrics().subscribers;
    assert_eq!(metrics.len(), 2);
    assert_eq!(metrics[0].name, "slow");
    assert_eq!(metrics[0].waiting, every.metrics().waiting);
    assert_eq!(metrics[0].combined + metrics[0].waiting as u64, 4999);
}

#[tokio::test(start_paused = true)]
async fn a_lag_is_reported_once_until_the_subscriber_has_caught_up() {
    let script = crate::cache::reflector::script::Script::new([]);
    let reports = Arc::new(Mutex::new(Vec::new()));
    let informer = Informer::builder(script)
        .on_error({
            let reports = Arc::clone(&reports);
            move |error| reports.lock().push(error.to_string())
        })
        .build();
    let limit = Duration::from_secs(5);
    let every = informer.subscribe().named("audit").every_event(100);
    let mut every = every.report_lag_after(limit);
    let quiet = informer.subscribe();
    apply(&informer, vec![pod("a", 1).put()]);
    for version in 2..6 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        apply(&informer, vec![pod("a", version).put()]);
    }
    let report =
        "the subscriber \"audit\" is slow: 2 events wait, the oldest of them for 6s".to_owned();
    assert_eq!(*reports.lock(), [report]);
    assert_eq!(every.metrics().oldest, Duration::from_secs(12));
    assert_eq!(quiet.metrics().oldest, Duration::from_secs(12));
    assert_eq!(ready(&mut every), "+a@1 ~a@1>2 ~a@2>3 ~a@3>4 ~a@4>5");
    assert_eq!(every.metrics().oldest, Duration::ZERO);
    for version in 6..9 {
        apply(&informer, vec![pod("a", version).put()]);
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
    assert_eq!(reports.lock().len(), 2);
}

#[tokio::test]
async fn keys_are_delivered_once_while_they_wait() {
    let (informer, _) = informer(&[]);
    replace(&informer, vec![pod("a", 1), pod("b", 1)]);
    let mut subscription = informer.subscribe().keys_only().named("queue");
    apply(
        &informer,
        vec![
            pod("b", 2).put(),
            pod("b", 3).put(),
            pod("new", 4).put(),
            Delta::Delete(pod("new", 5)),
        ],
    );
    let metrics = subscription.metrics();
    assert_eq!((metrics.waiting, metrics.combined), (4, 3));
    // A key that was initial and has changed is not initial any more. One of an object that came and went is told of.
    assert_eq!(keys(&mut subscription), "a* b synced new");
    apply(&informer, vec![Delta::Delete(pod("a", 6))]);
    assert_eq!(keys(&mut subscription), "a");
    assert_eq!(informer.metrics().subscribers[0].delivered, 4);
    informer.shutdown().await;
    assert_eq!(subscription.next().await, None);
    // After a shutdown the keys of what is there can still be read.
    let mut late = informer.subscribe().keys_only();
    assert!(matches!(
        late.next().await,
        Some(KeyEvent::Changed { initial: true, .. })
    ));
    assert_eq!(late.next().await, Some(KeyEvent::Synced));
    assert_eq!(late.next().await, None);
}

/// An object is freed when it leaves the cache, although its key waits.
#[tokio::test]
async fn keys_keep_no_objects_alive() {
    let (informer, _) = informer(&[]);
    let subscription = informer.subscribe().keys_only();
    replace(&informer, vec![pod("a", 1)]);
    let object = informer.lister().get("default", "a").expect("it is there");
    apply(&informer, vec![Delta::Delete(pod("a", 2))]);
    assert_eq!(Arc::strong_count(&object), 1);
    assert_eq!(subscription.metrics().waiting, 2);
    assert_eq!(
        text(&Event::Added {
            object,
            initial: false
        }),
        "+a@1"
    );
}
