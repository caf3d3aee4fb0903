//! The memory of slow readers is limited.

use std::sync::Weak;

use super::*;

/// More objects than a batch.
const OBJECTS: usize = 200;

/// A fixture with objects, without history, with a budget for readers below the size of the objects.
async fn full() -> Fixture {
    let f = forgetful().await;
    for number in 0..OBJECTS {
        f.create(widget(&format!("{number:03}"), json!({"color": "red"})))
            .await
            .unwrap();
    }
    f.cached().await;
    f
}

/// Replaces this number of objects, each once.
async fn replace(f: &Fixture, objects: std::ops::Range<usize>, color: &str) {
    for number in objects {
        f.merge(&format!("{number:03}"), json!({"spec": {"color": color}}))
            .await
            .unwrap();
    }
    f.cached().await;
    f.widgets.reads().stored().unwrap().cut_off_slow_readers();
}

/// Returns whether the current state of the last object is still in memory.
fn last(f: &Fixture) -> impl Fn() -> bool + use<> {
    let state = f.widgets.resource().cache.as_ref().unwrap().snapshot();
    let item = Arc::downgrade(state.get(&key(&format!("{:03}", OBJECTS - 1))).unwrap());
    move || Weak::strong_count(&item) > 0
}

#[tokio::test]
async fn a_list_that_is_not_read_is_cut_off_when_it_keeps_too_much() {
    for selector in ["", "!none"] {
        let f = full().await;
        let is_kept = last(&f);
        let mut old = f.list(&labels(selector)).await.unwrap().items;
        assert!(old.next().unwrap().is_ok());
        // Fewer bytes were replaced than the objects have.
        replace(&f, OBJECTS / 2..OBJECTS, "green").await;
        let mut young = f.list(&labels(selector)).await.unwrap().items;
        assert!(is_kept());
        replace(&f, 0..OBJECTS / 2, "blue").await;
        assert!(
            !is_kept(),
            "what it kept is dropped although nobody asks for more"
        );
        let error = old
            .find_map(Result::err)
            .expect("the list is not taken for whole");
        assert!(
            error.message.starts_with("the client reads too slowly"),
            "{}",
            error.message
        );
        // Readers that began later continue with their snapshot.
        let objects: Vec<_> = young.by_ref().map(|item| decoded(&item.unwrap())).collect();
        assert_eq!(objects.len(), OBJECTS);
        assert_eq!(at(&objects[OBJECTS - 1], "/spec/color"), "green");
        assert_eq!(at(&objects[0], "/spec/color"), "red");
    }
}

#[tokio::test]
async fn initial_events_that_are_not_read_are_cut_off_when_they_keep_too_much() {
    for selector in ["", "!none"] {
        let f = full().await;
        let is_kept = last(&f);
        let options = ListOptions {
            send_initial_events: Some(true),
            allow_watch_bookmarks: true,
            ..labels(selector)
        };
        let mut slow = f.widgets.reads().watch(&f.ctx, NS, &options).await.unwrap();
        assert!(slow.next().await.unwrap().is_ok());
        replace(&f, 0..OBJECTS, "green").await;
        replace(&f, 0..OBJECTS, "blue").await;
        assert!(!is_kept());
        let mut events = 1;
        while let Some(event) = slow.next().await {
            assert_eq!(event.unwrap().kind, WatchEventKind::Added);
            events += 1;
        }
        assert!(events < OBJECTS, "it ends before its bookmark");
    }
}

#[tokio::test]
async fn a_list_that_was_read_keeps_nothing() {
    let f = full().await;
    let is_kept = last(&f);
    let mut items = f.list(&ListOptions::default()).await.unwrap().items;
    assert_eq!(items.by_ref().count(), OBJECTS);
    replace(&f, OBJECTS - 1..OBJECTS, "green").await;
    replace(&f, OBJECTS - 1..OBJECTS, "blue").await;
    assert!(!is_kept());
}
