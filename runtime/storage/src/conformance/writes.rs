//! Create, get, update and delete, alone and concurrently.

use std::collections::BTreeSet;

use super::support::*;

/// A created key holds its value, at the revision of the create.
pub async fn create_writes_where_nothing_is(store: Arc<dyn Storage>) {
    let revision = create(&*store, "/r/a", "1").await;
    assert!(revision >= Revision(1));
    assert_eq!(
        store.get("/r/a").await,
        Ok((Some(entry("/r/a", "1", revision)), revision))
    );
}

/// A create of an existing key is refused with the present entry, and changes nothing.
pub async fn create_where_something_is_answers_with_it(store: Arc<dyn Storage>) {
    let revision = create(&*store, "/r/a", "1").await;
    let refused = store.create("/r/a", "2".into(), None).await;
    assert_eq!(
        refused,
        Err(StorageError::Exists(Box::new(entry("/r/a", "1", revision))))
    );
    assert_eq!(
        get(&*store, "/r/a").await,
        Some(entry("/r/a", "1", revision))
    );
}

/// A deleted key can be created again, at a later revision.
pub async fn create_after_delete_begins_anew(store: Arc<dyn Storage>) {
    let first = create(&*store, "/r/a", "1").await;
    let removed = delete(&*store, "/r/a", first).await;
    let second = create(&*store, "/r/a", "2").await;
    assert!(first < removed && removed < second);
    assert_eq!(get(&*store, "/r/a").await, Some(entry("/r/a", "2", second)));
}

/// An update of the expected revision writes the value at a new revision.
pub async fn update_replaces_what_was_expected(store: Arc<dyn Storage>) {
    let first = create(&*store, "/r/a", "1").await;
    let second = update(&*store, "/r/a", first, "2").await;
    assert!(second > first);
    assert_eq!(get(&*store, "/r/a").await, Some(entry("/r/a", "2", second)));
}

/// An update that expects another revision, earlier or later, is refused with the present entry.
pub async fn update_of_another_revision_conflicts_with_the_present(store: Arc<dyn Storage>) {
    let first = create(&*store, "/r/a", "1").await;
    let second = update(&*store, "/r/a", first, "2").await;
    for expected in [first, Revision(0), Revision(second.0 + 1)] {
        let refused = store.update_if("/r/a", expected, "3".into(), None).await;
        assert_eq!(
            refused,
            Err(conflict("/r/a", Some(entry("/r/a", "2", second)))),
            "{expected}"
        );
    }
    assert_eq!(get(&*store, "/r/a").await, Some(entry("/r/a", "2", second)));
}

/// An update of a key that does not exist, or no longer exists, conflicts.
pub async fn update_of_the_absent_conflicts_with_nothing(store: Arc<dyn Storage>) {
    let created = create(&*store, "/r/gone", "1").await;
    delete(&*store, "/r/gone", created).await;
    for (key, expected) in [
        ("/r/a", Revision(0)),
        ("/r/a", created),
        ("/r/gone", created),
        ("/r/gone", Revision(0)),
    ] {
        let refused = store.update_if(key, expected, "2".into(), None).await;
        assert_eq!(refused, Err(conflict(key, None)), "{key} {expected}");
    }
    assert_eq!(state(&*store, "/r/", None).await, [""; 0]);
}

/// A delete of the expected revision removes the key, at a new revision.
pub async fn delete_removes_what_was_expected(store: Arc<dyn Storage>) {
    let created = create(&*store, "/r/a", "1").await;
    let removed = delete(&*store, "/r/a", created).await;
    assert!(removed > created);
    assert_eq!(store.get("/r/a").await, Ok((None, removed)));
}

/// A delete that expects another revision is refused with the present entry.
pub async fn delete_of_another_revision_conflicts_with_the_present(store: Arc<dyn Storage>) {
    let first = create(&*store, "/r/a", "1").await;
    let second = update(&*store, "/r/a", first, "2").await;
    let refused = store.delete_if("/r/a", first).await;
    assert_eq!(
        refused,
        Err(conflict("/r/a", Some(entry("/r/a", "2", second))))
    );
    assert_eq!(get(&*store, "/r/a").await, Some(entry("/r/a", "2", second)));
}

/// A delete of a key that does not exist conflicts.
pub async fn delete_of_the_absent_conflicts_with_nothing(store: Arc<dyn Storage>) {
    let refused = store.delete_if("/r/a", Revision(1)).await;
    assert_eq!(refused, Err(conflict("/r/a", None)));
}

/// A get of an absent key returns the revision of the read.
pub async fn get_of_the_absent_is_nothing_at_the_present_revision(store: Arc<dyn Storage>) {
    let revision = create(&*store, "/r/a", "1").await;
    assert_eq!(store.get("/r/").await, Ok((None, revision)));
    assert_eq!(store.get("/r/a/").await, Ok((None, revision)));
    assert_eq!(store.get("").await, Ok((None, revision)));
}

/// Every write gets a greater revision, across all keys.
pub async fn every_write_has_a_revision_of_its_own(store: Arc<dyn Storage>) {
    let a = create(&*store, "/r/a", "1").await;
    let b = create(&*store, "/s/b", "1").await;
    let revisions = [
        a,
        b,
        update(&*store, "/r/a", a, "1").await,
        delete(&*store, "/s/b", b).await,
        create(&*store, "/s/b", "1").await,
    ];
    assert!(
        revisions.is_sorted_by(|earlier, later| earlier < later),
        "{revisions:?}"
    );
}

/// The current revision follows every write.
pub async fn current_revision_is_that_of_the_newest_write(store: Arc<dyn Storage>) {
    let created = create(&*store, "/r/a", "1").await;
    assert_eq!(store.current_revision().await, Ok(created));
    let removed = delete(&*store, "/r/a", created).await;
    assert_eq!(store.current_revision().await, Ok(removed));
}

/// Empty values, values with all bytes and values of 1.5 MiB are returned unchanged by get, list and watch.
pub async fn large_and_empty_values_come_back(store: Arc<dyn Storage>) {
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    let large: Vec<u8> = (0..3_u32 << 19)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let values = [Bytes::new(), Bytes::from_iter(0..=255), Bytes::from(large)];
    for (index, value) in values.iter().enumerate() {
        let key = format!("/r/{index}");
        store
            .create(&key, value.clone(), None)
            .await
            .expect("created");
        assert_eq!(
            get(&*store, &key).await.map(|entry| entry.value),
            Some(value.clone())
        );
        assert_eq!(next_event(&mut changes).await.value, value);
    }
    let page = list(
        &*store,
        ListRequest {
            prefix: "/r/".into(),
            ..ListRequest::default()
        },
    )
    .await;
    assert_eq!(
        page.entries
            .into_iter()
            .map(|entry| entry.value)
            .collect::<Vec<_>>(),
        values
    );
}

/// Keys may contain any text and be long.
pub async fn odd_keys_are_ordinary(store: Arc<dyn Storage>) {
    let long = format!("/r/{}", "x".repeat(4_000));
    let keys = [
        "/r/ ",
        "/r/%",
        "/r/'\"\\",
        "/r/A",
        "/r/_",
        "/r/a b",
        "/r/ä",
        "/r/日本",
        "/r/🦀",
        &long,
    ];
    for key in keys {
        create(&*store, key, key).await;
    }
    let mut sorted = keys.map(|key| format!("{key}={key}"));
    sorted.sort();
    assert_eq!(state(&*store, "/r/", None).await, sorted);
    for key in keys {
        let present = get(&*store, key).await.expect("it was created");
        delete(&*store, key, present.revision).await;
    }
    assert_eq!(state(&*store, "/r/", None).await, [""; 0]);
}

/// Of many creates of one key one succeeds, and the others get its entry in their error.
pub async fn concurrent_creates_of_one_key_succeed_once(store: Arc<dyn Storage>) {
    let creates = (0..16).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.create("/r/a", format!("{writer}").into(), None).await })
    });
    let creates: Vec<_> = creates.collect();
    let mut won = Vec::new();
    let mut told = Vec::new();
    for create in creates {
        match create.await.expect("it ran") {
            Ok(revision) => won.push(revision),
            Err(StorageError::Exists(present)) => told.push((present.revision, present.value)),
            Err(error) => panic!("{error}"),
        }
    }
    let present = get(&*store, "/r/a").await.expect("one of them wrote it");
    assert_eq!(won, [present.revision]);
    assert_eq!(told, vec![(present.revision, present.value); 15]);
}

/// Writers that add to one counter, each retrying after a conflict, lose no addition.
pub async fn concurrent_updates_lose_nothing(store: Arc<dyn Storage>) {
    create(&*store, "/r/counter", "0").await;
    let writers = (0..8).map(|_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut present = get(&*store, "/r/counter").await.expect("it is there");
            for _ in 0..10 {
                present = add_one(&*store, present).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("it ran");
    }
    assert_eq!(state(&*store, "/r/", None).await, ["/r/counter=80"]);
}

async fn add_one(store: &dyn Storage, mut present: Entry) -> Entry {
    loop {
        let count: u32 = String::from_utf8_lossy(&present.value)
            .parse()
            .expect("a number was written");
        let next = Bytes::from((count + 1).to_string());
        // Other tasks run between the read and the write.
        tokio::task::yield_now().await;
        match store
            .update_if(&present.key, present.revision, next.clone(), None)
            .await
        {
            Ok(revision) => {
                return Entry {
                    value: next,
                    revision,
                    ..present
                };
            }
            Err(StorageError::Conflict {
                present: Some(newer),
                ..
            }) => present = *newer,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Concurrent writers of different keys do not conflict: every key is present at its acknowledged revision.
pub async fn concurrent_writers_of_many_keys_lose_nothing(store: Arc<dyn Storage>) {
    let writers = (0..32).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for index in 0..8 {
                let key = format!("/r/{writer:02}-{index}");
                let revision = create(&*store, &key, &key).await;
                acknowledged.push(entry(&key, &key, revision));
            }
            acknowledged
        })
    });
    let mut expected = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        expected.extend(writer.await.expect("it ran"));
    }
    let page = list(
        &*store,
        ListRequest {
            prefix: "/r/".into(),
            ..ListRequest::default()
        },
    )
    .await;
    assert_eq!(page.entries, expected);
    let revisions: BTreeSet<_> = expected.iter().map(|entry| entry.revision).collect();
    assert_eq!(revisions.len(), expected.len());
}

/// A refused write gets no revision and is not delivered to watchers.
pub async fn refused_writes_change_nothing(store: Arc<dyn Storage>) {
    let mut changes = watch(&*store, "/r/", WatchStart::Now).await;
    let first = create(&*store, "/r/a", "1").await;
    let newer = Revision(first.0 + 1);
    assert!(store.create("/r/a", "2".into(), None).await.is_err());
    for (key, expected) in [("/r/a", newer), ("/r/b", first)] {
        let update = store.update_if(key, expected, "2".into(), None).await;
        assert!(update.is_err(), "{key}");
        assert!(store.delete_if(key, expected).await.is_err(), "{key}");
    }
    assert_eq!(store.current_revision().await, Ok(first));
    let last = create(&*store, "/r/z", "1").await;
    let seen = [
        next_event(&mut changes).await.revision,
        next_event(&mut changes).await.revision,
    ];
    assert_eq!(seen, [first, last]);
    assert_eq!(state(&*store, "/r/", None).await, ["/r/a=1", "/r/z=1"]);
}

fn conflict(key: &str, present: Option<Entry>) -> StorageError {
    StorageError::Conflict {
        key: key.to_owned(),
        present: present.map(Box::new),
    }
}
