//! What a store keeps when it is closed and opened again.

use super::support::*;

/// Watches and exact lists from these revisions are refused as compacted.
#[cfg(test)]
pub(crate) async fn all_are_too_old(store: &dyn Storage, revisions: &[Revision]) {
    for revision in revisions.iter().copied() {
        let watched = store.watch("/r/", WatchStart::After(revision)).await;
        let listed = store
            .list(ListRequest {
                prefix: "/r/".into(),
                at: Some(revision),
                ..ListRequest::default()
            })
            .await;
        for refused in [watched.map(drop), listed.map(drop)] {
            let is_too_old = matches!(
                refused,
                Err(StorageError::Compacted { requested, compacted })
                    if requested == revision && compacted > revision
            );
            assert!(is_too_old, "{revision}: {refused:?}");
        }
    }
}

/// Objects keep their revisions, and the next write gets the next revision.
pub async fn restart_keeps_objects_and_revision<B: Backend>(place: &B) {
    let store = place.open().await;
    let a = create(&*store, "/r/a", "1").await;
    let a2 = update(&*store, "/r/a", a, "2").await;
    let b = create(&*store, "/r/b", "1").await;
    let last = delete(&*store, "/r/b", b).await;
    store.close().await;
    let store = place.open().await;
    assert_eq!(
        store.get("/r/a").await,
        Ok((Some(entry("/r/a", "2", a2)), last))
    );
    assert_eq!(store.current_revision().await, Ok(last));
    assert_eq!(state(&*store, "/r/", None).await, ["/r/a=2"]);
    assert!(create(&*store, "/r/b", "1").await > last);
    store.close().await;
}

/// Lists at a revision and watches from a revision can reach back beyond the restart.
pub async fn restart_keeps_history_for_lists_and_watches<B: Backend>(place: &B) {
    let store = place.open().await;
    let a = create(&*store, "/r/a", "1").await;
    let a2 = update(&*store, "/r/a", a, "2").await;
    store.close().await;
    let store = place.open().await;
    let mut changes = watch(&*store, "/r/", WatchStart::After(a)).await;
    let a3 = delete(&*store, "/r/a", a2).await;
    let event = next_event(&mut changes).await;
    assert_eq!(
        (event.revision, event.previous),
        (a2, Some(("1".into(), a)))
    );
    let event = next_event(&mut changes).await;
    assert_eq!(
        (event.revision, event.previous),
        (a3, Some(("2".into(), a2)))
    );
    assert_eq!(state(&*store, "/r/", Some(a)).await, ["/r/a=1"]);
    assert_eq!(state(&*store, "/r/", Some(a2)).await, ["/r/a=2"]);
    store.close().await;
}

/// Compacted history stays compacted.
pub async fn restart_keeps_what_is_compacted<B: Backend>(place: &B) {
    let store = place.open().await;
    let a = create(&*store, "/r/a", "1").await;
    let b = create(&*store, "/r/b", "1").await;
    store.compact(b).await.expect("compacted");
    store.close().await;
    let store = place.open().await;
    let refused = StorageError::Compacted {
        requested: a,
        compacted: b,
    };
    assert_eq!(
        store.watch("/r/", WatchStart::After(a)).await.err(),
        Some(refused.clone())
    );
    let request = ListRequest {
        prefix: "/r/".into(),
        at: Some(a),
        ..ListRequest::default()
    };
    assert_eq!(store.list(request).await, Err(refused));
    assert_eq!(state(&*store, "/r/", Some(b)).await, ["/r/a=1", "/r/b=1"]);
    store.close().await;
}

/// Revisions never go back, even when everything was deleted and compacted.
pub async fn restart_keeps_the_revision_of_an_empty_store<B: Backend>(place: &B) {
    let store = place.open().await;
    let a = create(&*store, "/r/a", "1").await;
    let last = delete(&*store, "/r/a", a).await;
    store.compact(last).await.expect("compacted");
    store.close().await;
    for _ in 0..2 {
        let store = place.open().await;
        assert_eq!(store.current_revision().await, Ok(last));
        store.close().await;
    }
    let store = place.open().await;
    assert!(create(&*store, "/r/a", "1").await > last);
    store.close().await;
}

/// A key that expires while the store is closed is removed after it is opened.
pub async fn restart_keeps_times_to_live<B: Backend>(place: &B) {
    let store = place.open().await;
    let created = store
        .create("/r/a", "1".into(), Some(Duration::from_millis(300)))
        .await
        .expect("created");
    store.close().await;
    let store = place.open().await;
    let mut changes = watch(&*store, "/r/", WatchStart::After(created)).await;
    assert_eq!(text(&next_event(&mut changes).await), "Deleted /r/a");
    store.close().await;
}
