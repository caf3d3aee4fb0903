//! Requests that process many objects yield to other tasks.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use super::*;

/// Number of objects, for several turns.
const OBJECTS: usize = 300;
/// Maximum number of objects per turn.
const IN_ONE_TURN: usize = 150;

/// Widgets `0000` and following, with the parity of their number as a label; with and without a watch cache.
async fn fixtures() -> [Fixture; 2] {
    let stores = [Memory::new(), Memory::new()];
    let cached = started(builder(&stores[0]), Arc::clone(&stores[0])).await;
    let mut uncached = builder(&stores[1]);
    uncached.watch_cache(None);
    let uncached = started(uncached, Arc::clone(&stores[1])).await;
    for f in [&cached, &uncached] {
        for number in 0..OBJECTS {
            let object =
                json!({"metadata": {"name": format!("{number:04}"), "labels": {"n": "x"}}});
            f.create(object).await.unwrap();
        }
    }
    [cached, uncached]
}

/// Runs a future to completion, and counts its polls.
async fn turns<T>(future: impl Future<Output = T>) -> (T, usize) {
    let mut future = pin!(future);
    let mut turns = 1;
    loop {
        let polled = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        if let Poll::Ready(done) = polled {
            return (done, turns);
        }
        turns += 1;
        tokio::task::yield_now().await;
    }
}

/// Selectors that match no object of the fixture, in different ways.
fn selections() -> Vec<ListOptions> {
    vec![
        labels("n=y"),
        labels("!n"),
        fields("metadata.namespace=other"),
        labels("a,b,!c"),
    ]
}

#[tokio::test]
async fn a_watch_takes_turns_over_initial_objects_that_it_leaves_out() {
    for f in fixtures().await {
        for selection in selections() {
            let options = ListOptions {
                send_initial_events: Some(true),
                allow_watch_bookmarks: true,
                ..selection
            };
            let mut events = f.widgets.reads().watch(&f.ctx, NS, &options).await.unwrap();
            let (event, turns) = turns(events.next()).await;
            assert_eq!(event.unwrap().unwrap().kind, WatchEventKind::Bookmark);
            assert!(turns >= OBJECTS / IN_ONE_TURN, "{turns} {options:?}");
        }
    }
}

#[tokio::test]
async fn a_watch_takes_turns_over_changes_that_it_leaves_out() {
    for f in fixtures().await {
        let last = json!({"metadata": {"name": "last", "labels": {"n": "y"}}});
        f.create(last).await.unwrap();
        f.cached().await;
        let options = ListOptions {
            resource_version: "1".to_owned(),
            send_initial_events: Some(false),
            ..labels("n=y")
        };
        let mut events = f.widgets.reads().watch(&f.ctx, NS, &options).await.unwrap();
        let (event, turns) = turns(events.next()).await;
        assert_eq!(decoded(&event.unwrap().unwrap().object).name(), "last");
        assert!(turns >= OBJECTS / IN_ONE_TURN, "{turns}");
    }
}

#[tokio::test]
async fn a_list_takes_turns_over_objects_that_it_leaves_out() {
    for f in fixtures().await {
        for options in selections() {
            let (listed, turns) = turns(f.list(&options)).await;
            assert_eq!(names(&listed.unwrap()), [""; 0]);
            assert!(turns >= OBJECTS / IN_ONE_TURN, "{turns} {options:?}");
        }
    }
}
