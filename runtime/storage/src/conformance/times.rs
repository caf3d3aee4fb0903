//! Times to live, compaction and closing.

use super::support::*;

/// Short, but long enough for two writes before it ends, on a busy machine too.
const TTL: Duration = Duration::from_secs(2);
/// By this much another key lives longer than one whose end would be an error: a backend may remove keys that end in
/// the same moment in any order.
const MARGIN: Duration = Duration::from_millis(500);

/// An expired key is removed by an ordinary delete.
pub async fn ttl_removes_and_watchers_see_it(store: Arc<dyn Storage>) {
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    let created = store
        .create("/r/a", "1".into(), Some(TTL))
        .await
        .expect("created");
    assert_eq!(
        get(&*store, "/r/a").await,
        Some(entry("/r/a", "1", created))
    );
    assert_eq!(next_event(&mut changes).await.kind, EventKind::Created);
    let removed = next_event(&mut changes).await;
    assert_eq!(
        (removed.kind, removed.previous),
        (EventKind::Deleted, Some(("1".into(), created)))
    );
    assert_eq!(store.get("/r/a").await, Ok((None, removed.revision)));
}

/// Keys that expire together are each removed by one delete.
pub async fn ttl_of_many_keys_removes_each_once(store: Arc<dyn Storage>) {
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    for index in 0..40 {
        let key = format!("/r/{index:02}");
        let created = store.create(&key, "1".into(), Some(TTL)).await;
        created.expect("created");
    }
    create(&*store, "/r/stays", "1").await;
    let mut removed = Vec::new();
    while removed.len() < 40 {
        let event = next_event(&mut changes).await;
        if event.kind == EventKind::Deleted {
            removed.push(event.key);
        }
    }
    removed.sort();
    removed.dedup();
    assert_eq!(removed.len(), 40);
    let last = create(&*store, "/r/last", "1").await;
    assert_eq!(next_event(&mut changes).await.revision, last);
    assert_eq!(
        state(&*store, "/r/", None).await,
        ["/r/last=1", "/r/stays=1"]
    );
}

/// An update without a time to live removes the old one.
pub async fn update_without_ttl_lives_on(store: Arc<dyn Storage>) {
    let created = store
        .create("/r/a", "1".into(), Some(TTL))
        .await
        .expect("created");
    update(&*store, "/r/a", created, "2").await;
    outlast(&*store, TTL + MARGIN).await;
    assert_eq!(state(&*store, "/r/", None).await, ["/r/a=2"]);
}

/// The time to live of an update counts from the update, also if the key had none.
pub async fn update_with_ttl_begins_anew(store: Arc<dyn Storage>) {
    let long = Some(Duration::from_secs(3_600));
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    let longer = store
        .create("/r/longer", "1".into(), Some(TTL))
        .await
        .expect("created");
    store
        .update_if("/r/longer", longer, "2".into(), long)
        .await
        .expect("updated");
    let shorter = store
        .create("/r/shorter", "1".into(), long)
        .await
        .expect("created");
    store
        .update_if("/r/shorter", shorter, "2".into(), Some(TTL))
        .await
        .expect("updated");
    let removed = loop {
        let event = next_event(&mut changes).await;
        if event.kind == EventKind::Deleted {
            break event;
        }
    };
    assert_eq!(removed.key, "/r/shorter");
    outlast(&*store, TTL).await;
    assert_eq!(state(&*store, "/r/", None).await, ["/r/longer=2"]);
}

/// A rewrite neither begins the time to live anew nor ends it, and gives none to a key without one.
pub async fn rewrite_keeps_the_time_to_live(store: Arc<dyn Storage>) {
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    let long = store
        .create("/r/long", "1".into(), Some(3 * TTL))
        .await
        .expect("created");
    let endless = create(&*store, "/r/endless", "1").await;
    let rewritten = store.rewrite_if("/r/endless", endless, "2".into()).await;
    rewritten.expect("rewritten");
    // Part of the time passes before the rewrite, so that a whole time to live from there ends later.
    outlast(&*store, 2 * TTL).await;
    let rewritten = store.rewrite_if("/r/long", long, "2".into()).await;
    rewritten.expect("rewritten");
    let created = store.create("/other", "1".into(), Some(2 * TTL)).await;
    created.expect("created");
    let removed = loop {
        let event = next_event(&mut changes).await;
        if event.kind == EventKind::Deleted {
            break event;
        }
    };
    assert_eq!(removed.key, "/r/long");
    let previous = removed.previous.map(|(value, _)| value);
    assert_eq!(previous.as_deref(), Some(&b"2"[..]));
    let (other, _) = store.get("/other").await.expect("got");
    assert!(
        other.is_some(),
        "its time began at the rewrite, and ends later"
    );
    assert_eq!(state(&*store, "/r/", None).await, ["/r/endless=2"]);
}

/// A rewrite is a write like others: it has a revision, watchers see it, and its precondition is checked.
pub async fn rewrite_replaces_the_value_at_its_revision(store: Arc<dyn Storage>) {
    let created = create(&*store, "/r/a", "1").await;
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    let rewritten = store.rewrite_if("/r/a", created, "2".into()).await;
    let rewritten = rewritten.expect("rewritten");
    assert!(rewritten > created);
    let event = next_event(&mut changes).await;
    assert_eq!(
        (event.kind, &*event.key, &event.value[..], event.revision),
        (EventKind::Updated, "/r/a", &b"2"[..], rewritten)
    );
    for (key, expected) in [("/r/a", created), ("/r/none", created)] {
        let refused = store.rewrite_if(key, expected, "3".into()).await;
        let present = match refused {
            Err(StorageError::Conflict { present, .. }) => present,
            other => panic!("{other:?}"),
        };
        let present = present.map(|entry| (entry.key, entry.revision));
        let is = (key == "/r/a").then(|| (key.to_owned(), rewritten));
        assert_eq!(present, is);
    }
    assert_eq!(state(&*store, "/r/", None).await, ["/r/a=2"]);
}

/// The time to live of a deleted key does not apply to a key that is created in its place.
pub async fn ttl_ends_with_its_key(store: Arc<dyn Storage>) {
    let created = store
        .create("/r/a", "1".into(), Some(TTL))
        .await
        .expect("created");
    delete(&*store, "/r/a", created).await;
    create(&*store, "/r/a", "2").await;
    outlast(&*store, TTL + MARGIN).await;
    assert_eq!(state(&*store, "/r/", None).await, ["/r/a=2"]);
}

/// Present values and the revision stay when the whole history is compacted.
pub async fn compaction_keeps_what_is_present(store: Arc<dyn Storage>) {
    let a = create(&*store, "/r/a", "1").await;
    let a2 = update(&*store, "/r/a", a, "2").await;
    let b = create(&*store, "/r/b", "1").await;
    let gone = create(&*store, "/r/gone", "1").await;
    let last = delete(&*store, "/r/gone", gone).await;
    store.compact(last).await.expect("compacted");
    assert_eq!(store.current_revision().await, Ok(last));
    let page = list(
        &*store,
        ListRequest {
            prefix: "/r/".into(),
            ..ListRequest::default()
        },
    )
    .await;
    assert_eq!(
        page.entries,
        [entry("/r/a", "2", a2), entry("/r/b", "1", b)]
    );
    assert_eq!(get(&*store, "/r/a").await, Some(entry("/r/a", "2", a2)));
    let next = update(&*store, "/r/a", a2, "3").await;
    assert!(next > last);
    let mut changes = watch(&*store, "/r/", WatchStart::After(last)).await;
    let event = next_event(&mut changes).await;
    assert_eq!(
        (event.revision, event.previous),
        (next, Some(("2".into(), a2)))
    );
}

/// The state at the compacted revision, and at every later one, can still be listed.
pub async fn compaction_keeps_the_state_at_its_revision(store: Arc<dyn Storage>) {
    let a = create(&*store, "/r/a", "1").await;
    let b = create(&*store, "/r/b", "1").await;
    let a2 = update(&*store, "/r/a", a, "2").await;
    let b2 = delete(&*store, "/r/b", b).await;
    store.compact(b).await.expect("compacted");
    assert_eq!(state(&*store, "/r/", Some(b)).await, ["/r/a=1", "/r/b=1"]);
    assert_eq!(state(&*store, "/r/", Some(a2)).await, ["/r/a=2", "/r/b=1"]);
    assert_eq!(state(&*store, "/r/", Some(b2)).await, ["/r/a=2"]);
}

/// A future revision cannot be compacted.
pub async fn compaction_of_the_future_is_refused(store: Arc<dyn Storage>) {
    let current = create(&*store, "/r/a", "1").await;
    let requested = Revision(current.0 + 1);
    assert_eq!(
        store.compact(requested).await,
        Err(StorageError::Future { requested, current })
    );
}

/// Compacting a revision that is already compacted does nothing.
pub async fn compaction_of_the_compacted_does_nothing(store: Arc<dyn Storage>) {
    let a = create(&*store, "/r/a", "1").await;
    let b = create(&*store, "/r/b", "1").await;
    create(&*store, "/r/c", "1").await;
    for revision in [b, b, a, Revision(0)] {
        assert_eq!(store.compact(revision).await, Ok(()), "{revision}");
    }
    assert_eq!(state(&*store, "/r/", Some(b)).await, ["/r/a=1", "/r/b=1"]);
}

/// A closed store answers every call with [`StorageError::Unavailable`]; it may be closed again.
pub async fn closed_store_is_unavailable(store: Arc<dyn Storage>) {
    let revision = create(&*store, "/r/a", "1").await;
    store.close().await;
    store.close().await;
    let answers = [
        store.get("/r/a").await.err(),
        store.list(ListRequest::default()).await.err(),
        store.count("/r/").await.err(),
        store.create("/r/b", "1".into(), None).await.err(),
        store
            .update_if("/r/a", revision, "2".into(), None)
            .await
            .err(),
        store.delete_if("/r/a", revision).await.err(),
        store.watch("/r/", WatchStart::Now).await.err(),
        store.request_progress().await.err(),
        store.current_revision().await.err(),
        store.compact(revision).await.err(),
    ];
    for (call, answer) in answers.iter().enumerate() {
        assert!(
            matches!(answer, Some(StorageError::Unavailable(_))),
            "call {call}: {answer:?}"
        );
    }
}

/// When the store is closed, watches deliver the remaining changes and end with an error.
pub async fn close_ends_watches(store: Arc<dyn Storage>) {
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    create(&*store, "/r/a", "1").await;
    store.close().await;
    assert_eq!(text(&next_event(&mut changes).await), "Created /r/a=1");
    let end = loop {
        match next(&mut changes).await {
            Some(Ok(WatchItem::Progress(_))) => {}
            end => break end,
        }
    };
    assert!(
        matches!(end, Some(Err(StorageError::Unavailable(_)))),
        "{end:?}"
    );
    assert_eq!(next(&mut changes).await, None);
}

/// Waits until a key that is created now with this time to live is gone; earlier keys with the same time are gone too.
async fn outlast(store: &dyn Storage, ttl: Duration) {
    let mut changes = watch(store, "/outlast/", WatchStart::Now).await;
    store
        .create("/outlast/a", "".into(), Some(ttl))
        .await
        .expect("created");
    while next_event(&mut changes).await.kind != EventKind::Deleted {}
}
