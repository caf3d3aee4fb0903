//! Watches: the delivered changes, their start, and their order.

use std::collections::BTreeMap;

use super::support::*;

/// A watch from now delivers later changes and no earlier ones.
pub async fn watch_from_now_delivers_what_follows(store: Arc<dyn Storage>) {
    let a = create(&*store, "/r/a", "1").await;
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    update(&*store, "/r/a", a, "2").await;
    let b = create(&*store, "/r/b", "1").await;
    delete(&*store, "/r/b", b).await;
    assert_eq!(
        next_texts(&mut changes, 3).await,
        ["Updated /r/a=2", "Created /r/b=1", "Deleted /r/b"]
    );
}

/// A watch from a revision delivers every change after it, even long ago.
pub async fn watch_from_a_revision_delivers_what_followed_it(store: Arc<dyn Storage>) {
    let start = store.current_revision().await.expect("read");
    let first = create(&*store, "/r/a", "1").await;
    let b = create(&*store, "/r/b", "1").await;
    let last = delete(&*store, "/r/b", b).await;
    let check = async |after, expected: &[&str]| {
        let mut changes = watch(&*store, "/r/", WatchStart::After(after)).await;
        let events = events_until(&mut changes, last).await;
        assert_eq!(
            events.iter().map(text).collect::<Vec<_>>(),
            expected,
            "after {after}"
        );
    };
    check(start, &["Created /r/a=1", "Created /r/b=1", "Deleted /r/b"]).await;
    check(first, &["Created /r/b=1", "Deleted /r/b"]).await;
    check(b, &["Deleted /r/b"]).await;
    check(last, &[]).await;
}

/// A watch cannot begin before the compacted revision; the first kept change is still delivered.
pub async fn watch_from_a_compacted_revision_is_refused(store: Arc<dyn Storage>) {
    let a = create(&*store, "/r/a", "1").await;
    let compacted = create(&*store, "/r/b", "1").await;
    let last = create(&*store, "/r/c", "1").await;
    store.compact(compacted).await.expect("compacted");
    let refused = store.watch("/r/", WatchStart::After(a)).await.err();
    assert_eq!(
        refused,
        Some(StorageError::Compacted {
            requested: a,
            compacted
        })
    );
    let mut changes = watch(&*store, "/r/", WatchStart::After(compacted)).await;
    assert_eq!(next_event(&mut changes).await.revision, last);
}

/// A watch from a future revision skips the changes up to it.
pub async fn watch_from_a_future_revision_waits_for_it(store: Arc<dyn Storage>) {
    let a = create(&*store, "/r/a", "1").await;
    let mut changes = watch(&*store, "/r/", WatchStart::After(Revision(a.0 + 2))).await;
    for key in ["/r/b", "/r/c", "/r/d"] {
        create(&*store, key, "1").await;
    }
    assert_eq!(next_texts(&mut changes, 1).await, ["Created /r/d=1"]);
}

/// Updates and deletes deliver the previous value, both from history and live.
pub async fn watch_tells_the_previous_value(store: Arc<dyn Storage>) {
    let mut live = watch(&*store, "/r/", WatchStart::Now).await;
    let first = create(&*store, "/r/a", "1").await;
    let second = update(&*store, "/r/a", first, "2").await;
    let third = delete(&*store, "/r/a", second).await;
    let event = |kind, value: &'static str, previous, revision| Event {
        kind,
        key: "/r/a".into(),
        value: value.into(),
        previous,
        revision,
    };
    let expected = [
        event(EventKind::Created, "1", None, first),
        event(EventKind::Updated, "2", Some(("1".into(), first)), second),
        event(EventKind::Deleted, "", Some(("2".into(), second)), third),
    ];
    let mut late = watch(&*store, "/r/", WatchStart::After(Revision(first.0 - 1))).await;
    for expected in expected {
        assert_eq!(next_event(&mut live).await, expected, "live");
        assert_eq!(next_event(&mut late).await, expected, "from history");
    }
}

/// A watch does not deliver changes of a collection whose name begins with the same letters, live or from history.
pub async fn watch_leaves_out_siblings_of_the_prefix(store: Arc<dyn Storage>) {
    let start = store.current_revision().await.expect("read");
    let mut live = watch(&*store, "/r/pods/", WatchStart::Now).await;
    for key in ["/r/podsets/a", "/r/pods", "/r/pods/a", "/s/pods/a"] {
        create(&*store, key, "").await;
    }
    let last = create(&*store, "/r/pods/b", "").await;
    let mut late = watch(&*store, "/r/pods/", WatchStart::After(start)).await;
    let expected = ["Created /r/pods/a=", "Created /r/pods/b="];
    assert_eq!(next_texts(&mut live, 2).await, expected);
    let events = events_until(&mut late, last).await;
    assert_eq!(events.iter().map(text).collect::<Vec<_>>(), expected);
}

/// With many writers, changes come in the order of their revisions, each once.
pub async fn watch_keeps_the_order_of_revisions(store: Arc<dyn Storage>) {
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    let mut acknowledged = write_many(&store, 16, 12).await;
    acknowledged.sort_unstable();
    let mut delivered = Vec::new();
    while delivered.len() < acknowledged.len() {
        delivered.push(next_event(&mut changes).await.revision);
    }
    assert_eq!(delivered, acknowledged);
}

/// With many writers of the same keys, each change has the previous change of its key as its previous value.
pub async fn watch_keeps_the_order_of_each_key(store: Arc<dyn Storage>) {
    let start = store.current_revision().await.expect("read");
    let mut live = watch(&*store, "/r/", WatchStart::Now).await;
    let writers = (0..6).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut written = 0_u32;
            while written < 12 {
                let key = format!("/r/{}", (writer + written) % 3);
                let value = Bytes::from(format!("{writer}-{written}"));
                let done = match get(&*store, &key).await {
                    None => store.create(&key, value, None).await,
                    Some(present) if written % 5 == 4 => {
                        store.delete_if(&key, present.revision).await
                    }
                    Some(present) => store.update_if(&key, present.revision, value, None).await,
                };
                written += u32::from(done.is_ok());
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("it ran");
    }
    let last = store.current_revision().await.expect("read");
    let mut late = watch(&*store, "/r/", WatchStart::After(start)).await;
    for (which, changes) in [("live", &mut live), ("from history", &mut late)] {
        let mut present: BTreeMap<String, (Bytes, Revision)> = BTreeMap::new();
        let mut reached = start;
        while reached < last {
            let event = next_event(changes).await;
            assert!(event.revision > reached, "{which}: {event:?}");
            reached = event.revision;
            let kind = match (&event.previous, event.kind) {
                (None, _) => EventKind::Created,
                (Some(_), EventKind::Created) => EventKind::Updated,
                (Some(_), kind) => kind,
            };
            assert_eq!(event.kind, kind, "{which}: {event:?}");
            assert_eq!(
                present.get(&event.key),
                event.previous.as_ref(),
                "{which}: {event:?}"
            );
            if event.kind == EventKind::Deleted {
                present.remove(&event.key);
            } else {
                present.insert(event.key, (event.value, event.revision));
            }
        }
        let expected: Vec<_> = present
            .iter()
            .map(|(key, (value, _))| format!("{key}={}", String::from_utf8_lossy(value)))
            .collect();
        assert_eq!(state(&*store, "/r/", None).await, expected, "{which}");
    }
}

/// A watch that begins in history, while other tasks write, delivers every change once.
pub async fn watch_passes_from_history_to_the_present_without_a_gap(store: Arc<dyn Storage>) {
    let start = store.current_revision().await.expect("read");
    let early = write_many(&store, 4, 8).await;
    let writing = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { write_many(&store, 8, 24).await })
    };
    let mut watches = Vec::new();
    let mut between = Vec::new();
    for index in 0..4 {
        watches.push(watch(&*store, "/r/", WatchStart::After(start)).await);
        // This write comes after the watch began, regardless of the other tasks.
        between.push(create(&*store, &format!("/r/between-{index}"), "1").await);
        let seen = store.current_revision().await.expect("read");
        let mut passing = watch(&*store, "/r/", WatchStart::After(start)).await;
        events_until(&mut passing, seen).await;
    }
    let mut acknowledged = [early, writing.await.expect("it ran"), between].concat();
    acknowledged.sort_unstable();
    for mut changes in watches {
        for expected in &acknowledged {
            assert_eq!(next_event(&mut changes).await.revision, *expected);
        }
    }
}

/// Each of many watchers gets every change below its prefix.
pub async fn watchers_all_get_everything(store: Arc<dyn Storage>) {
    let mut all = Vec::new();
    for index in 0..50 {
        let prefix = if index % 2 == 0 { "/r/" } else { "/r/a/" };
        all.push((prefix, watch(&*store, prefix, WatchStart::Now).await));
    }
    for key in ["/r/a/1", "/r/b/1", "/r/a/2", "/r/b/2", "/r/a/3"] {
        create(&*store, key, "").await;
    }
    for (prefix, mut changes) in all {
        let below: &[&str] = match prefix {
            "/r/" => &["/r/a/1", "/r/b/1", "/r/a/2", "/r/b/2", "/r/a/3"],
            _ => &["/r/a/1", "/r/a/2", "/r/a/3"],
        };
        for key in below {
            assert_eq!(next_event(&mut changes).await.key, *key, "below {prefix}");
        }
    }
}

/// Watchers that are dropped, read or unread, do not affect the others.
pub async fn dropped_watch_disturbs_no_other(store: Arc<dyn Storage>) {
    let mut stays = watch(&*store, "/r/", WatchStart::Now).await;
    let leaves = watch(&*store, "/r/", WatchStart::Now).await;
    let mut leaves_after_one = watch(&*store, "/r/", WatchStart::Now).await;
    create(&*store, "/r/a", "1").await;
    next_event(&mut leaves_after_one).await;
    drop((leaves, leaves_after_one));
    create(&*store, "/r/b", "1").await;
    assert_eq!(
        next_texts(&mut stays, 2).await,
        ["Created /r/a=1", "Created /r/b=1"]
    );
}

/// A watcher that stops reading while more happens than any buffer holds gets everything when it reads on, or gets
/// [`StorageError::Lagged`] and the rest by a watch from its last revision.
pub async fn slow_watcher_misses_nothing(store: Arc<dyn Storage>) {
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    let mut acknowledged = write_many(&store, 8, 320).await;
    acknowledged.sort_unstable();
    let mut last = Revision(acknowledged[0].0 - 1);
    let mut delivered = Vec::new();
    while delivered.len() < acknowledged.len() {
        match next(&mut changes).await {
            Some(Ok(WatchItem::Event(event))) => {
                last = event.revision;
                delivered.push(last);
            }
            Some(Ok(WatchItem::Progress(_))) => {}
            Some(Err(StorageError::Lagged)) => {
                changes = watch(&*store, "/r/", WatchStart::After(last)).await;
            }
            ended => panic!("a watch goes on, but: {ended:?}"),
        }
    }
    assert_eq!(delivered, acknowledged);
}

/// A watcher that stops reading until its unread changes are compacted still gets them, or its watch ends with
/// [`StorageError::Compacted`]: changes are never skipped silently.
pub async fn slow_watcher_learns_of_compaction(store: Arc<dyn Storage>) {
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    let mut acknowledged = write_many(&store, 8, 320).await;
    acknowledged.sort_unstable();
    let last = acknowledged[acknowledged.len() - 1];
    store.compact(last).await.expect("compacted");
    let mut expected = acknowledged.iter();
    while !expected.as_slice().is_empty() {
        match next(&mut changes).await {
            Some(Ok(WatchItem::Event(event))) => {
                assert_eq!(Some(&event.revision), expected.next(), "a gap");
            }
            Some(Ok(WatchItem::Progress(reached))) => {
                assert!(reached < expected.as_slice()[0], "it passes over changes");
            }
            Some(Err(StorageError::Compacted { compacted, .. })) => {
                assert_eq!(compacted, last);
                assert_eq!(next(&mut changes).await, None, "it is over");
                return;
            }
            Some(Err(StorageError::Lagged)) => return,
            ended => panic!("a watch goes on, but: {ended:?}"),
        }
    }
}

/// After the replay of history, a progress item reports its end.
pub async fn progress_follows_the_replay(store: Arc<dyn Storage>) {
    let begin = store.current_revision().await.expect("read");
    create(&*store, "/r/a", "1").await;
    let last = create(&*store, "/s/a", "1").await;
    for (start, expected) in [
        (WatchStart::Now, 0),
        (WatchStart::After(begin), 1),
        (WatchStart::After(last), 0),
    ] {
        let mut changes = watch(&*store, "/r/", start).await;
        assert_eq!(
            events_until(&mut changes, last).await.len(),
            expected,
            "{start:?}"
        );
    }
}

/// A requested progress has the current revision, which may be from a write to another prefix.
pub async fn progress_comes_when_it_is_asked_for(store: Arc<dyn Storage>) {
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    for _ in 0..3 {
        let revision = create(
            &*store,
            &format!("/s/{}", store.current_revision().await.expect("read")),
            "1",
        )
        .await;
        store.request_progress().await.expect("asked");
        assert_eq!(events_until(&mut changes, revision).await, []);
    }
}

/// Without a request, a watch without changes below its prefix still gets progress items as the store moves on.
pub async fn progress_comes_when_others_write(store: Arc<dyn Storage>) {
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    let start = store.current_revision().await.expect("read");
    events_until(&mut changes, start).await;
    let last = create(&*store, "/s/a", "1").await;
    assert_eq!(events_until(&mut changes, last).await, []);
}

async fn next_texts(changes: &mut WatchStream, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(text(&next_event(changes).await));
    }
    texts
}
