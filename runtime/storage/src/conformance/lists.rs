//! List and count: order, bounds, and the state at a revision.

use super::support::*;

/// Keys are returned in byte order, regardless of the order of the writes.
pub async fn list_is_in_the_order_of_keys(store: Arc<dyn Storage>) {
    for key in ["/r/b", "/r/a/z", "/r/a", "/r/ä", "/r/a-", "/r/B"] {
        create(&*store, key, "").await;
    }
    assert_eq!(
        state(&*store, "/r/", None).await,
        ["/r/B=", "/r/a=", "/r/a-=", "/r/a/z=", "/r/b=", "/r/ä="]
    );
}

/// A prefix that ends with a slash does not match a collection whose name begins with the same letters.
pub async fn list_leaves_out_siblings_of_the_prefix(store: Arc<dyn Storage>) {
    for key in [
        "/r/pods/ns/a",
        "/r/pods/ns2/a",
        "/r/pod",
        "/r/pods",
        "/r/podsets/ns/a",
        "/r/pods/ns/b",
    ] {
        create(&*store, key, "").await;
    }
    assert_eq!(
        state(&*store, "/r/pods/ns/", None).await,
        ["/r/pods/ns/a=", "/r/pods/ns/b="]
    );
    assert_eq!(
        state(&*store, "/r/pods/", None).await,
        ["/r/pods/ns/a=", "/r/pods/ns/b=", "/r/pods/ns2/a="]
    );
}

/// An empty list has a revision too.
pub async fn list_of_nothing_has_a_revision(store: Arc<dyn Storage>) {
    let revision = create(&*store, "/s/a", "").await;
    let page = list(
        &*store,
        ListRequest {
            prefix: "/r/".into(),
            ..ListRequest::default()
        },
    )
    .await;
    assert_eq!(
        (page.entries.len(), page.revision, page.more),
        (0, revision, false)
    );
}

/// A page of a longer list reports that entries follow, and the correct count if it reports one.
pub async fn list_with_a_limit_says_what_remains(store: Arc<dyn Storage>) {
    create_letters(&*store, "abcde").await;
    create(&*store, "/s/a", "").await;
    let check = async |limit, entries, remaining: u64| {
        let page = list(
            &*store,
            ListRequest {
                prefix: "/r/".into(),
                limit,
                ..ListRequest::default()
            },
        )
        .await;
        assert_eq!(
            (page.entries.len(), page.more),
            (entries, remaining > 0),
            "limit {limit}"
        );
        assert!(
            page.remaining.is_none_or(|said| said == remaining),
            "limit {limit}: {:?}",
            page.remaining
        );
    };
    check(0, 5, 0).await;
    check(1, 1, 4).await;
    check(4, 4, 1).await;
    check(5, 5, 0).await;
    check(6, 5, 0).await;
}

/// A list can start in the middle of its prefix, at a key that need not exist.
pub async fn list_from_a_key_begins_there(store: Arc<dyn Storage>) {
    create_letters(&*store, "abc").await;
    create(&*store, "/s/a", "").await;
    let check = async |start: &str, expected: &[&str]| {
        let request = ListRequest {
            prefix: "/r/".into(),
            start: start.into(),
            ..ListRequest::default()
        };
        assert_eq!(
            texts(&list(&*store, request).await),
            expected,
            "from {start:?}"
        );
    };
    check("", &["/r/a=", "/r/b=", "/r/c="]).await;
    check("/a", &["/r/a=", "/r/b=", "/r/c="]).await;
    check("/r/b", &["/r/b=", "/r/c="]).await;
    check("/r/b\0", &["/r/c="]).await;
    check("/r/d", &[]).await;
    check("/t", &[]).await;
}

/// Each kept revision can be listed, with the values of that time.
pub async fn list_at_a_revision_is_the_state_then(store: Arc<dyn Storage>) {
    let a = create(&*store, "/r/a", "1").await;
    let b = create(&*store, "/r/b", "1").await;
    let a2 = update(&*store, "/r/a", a, "2").await;
    let b2 = delete(&*store, "/r/b", b).await;
    let c = create(&*store, "/r/c", "1").await;
    let b3 = create(&*store, "/r/b", "3").await;
    let a3 = update(&*store, "/r/a", a2, "3").await;
    let check = async |at, expected: &[&str]| {
        let page = list(
            &*store,
            ListRequest {
                prefix: "/r/".into(),
                at: Some(at),
                ..ListRequest::default()
            },
        )
        .await;
        assert_eq!(
            (texts(&page), page.revision),
            (expected.iter().map(|&text| text.into()).collect(), at)
        );
    };
    check(a, &["/r/a=1"]).await;
    check(b, &["/r/a=1", "/r/b=1"]).await;
    check(a2, &["/r/a=2", "/r/b=1"]).await;
    check(b2, &["/r/a=2"]).await;
    check(c, &["/r/a=2", "/r/c=1"]).await;
    check(b3, &["/r/a=2", "/r/b=3", "/r/c=1"]).await;
    check(a3, &["/r/a=3", "/r/b=3", "/r/c=1"]).await;
    let page = list(
        &*store,
        ListRequest {
            prefix: "/r/".into(),
            at: Some(b2),
            ..ListRequest::default()
        },
    )
    .await;
    assert_eq!(page.entries, [entry("/r/a", "2", a2)]);
}

/// All pages of a list show one state while other tasks write.
pub async fn list_at_a_revision_pages_through_that_state(store: Arc<dyn Storage>) {
    create_letters(&*store, "bdfhj").await;
    let mut request = ListRequest {
        prefix: "/r/".into(),
        limit: 2,
        ..ListRequest::default()
    };
    let mut seen = Vec::new();
    let mut left = 5;
    loop {
        let page = list(&*store, request.clone()).await;
        seen.extend(texts(&page));
        left -= page.entries.len() as u64;
        assert!(
            page.remaining.is_none_or(|said| said == left),
            "{left} are left, not {:?}",
            page.remaining
        );
        let Some(last) = page.entries.last().filter(|_| page.more) else {
            break;
        };
        request.start = format!("{}\0", last.key);
        request.at = Some(page.revision);
        // Before, at and after the start of the next page.
        let letter = &last.key[3..];
        let gone = ListRequest {
            start: request.start.clone(),
            limit: 1,
            at: None,
            ..request.clone()
        };
        if let [next, ..] = &list(&*store, gone).await.entries[..] {
            delete(&*store, &next.key, next.revision).await;
        }
        for key in [
            format!("/r/a{letter}"),
            format!("{}x", last.key),
            format!("/r/z{letter}"),
        ] {
            create(&*store, &key, "late").await;
        }
    }
    assert_eq!(seen, ["/r/b=", "/r/d=", "/r/f=", "/r/h=", "/r/j="]);
}

/// A list at a compacted revision is refused; the error names the oldest revision that can be listed.
pub async fn list_at_a_compacted_revision_is_refused(store: Arc<dyn Storage>) {
    let a = create(&*store, "/r/a", "1").await;
    let a2 = update(&*store, "/r/a", a, "2").await;
    store.compact(a2).await.expect("compacted");
    let request = ListRequest {
        prefix: "/r/".into(),
        at: Some(a),
        ..ListRequest::default()
    };
    assert_eq!(
        store.list(request).await,
        Err(StorageError::Compacted {
            requested: a,
            compacted: a2
        })
    );
}

/// A list at a future revision is refused.
pub async fn list_at_a_future_revision_is_refused(store: Arc<dyn Storage>) {
    let current = create(&*store, "/r/a", "1").await;
    let requested = Revision(current.0 + 1);
    let request = ListRequest {
        prefix: "/r/".into(),
        at: Some(requested),
        ..ListRequest::default()
    };
    assert_eq!(
        store.list(request).await,
        Err(StorageError::Future { requested, current })
    );
}

/// A list of more keys than the backend reads at a time ([`MOST_READ_AT_ONCE`]) is complete, at once and in pages.
pub async fn list_of_many_keys_is_whole(store: Arc<dyn Storage>) {
    let written = write_many(&store, 10, 150).await;
    assert!(written.len() > 2 * MOST_READ_AT_ONCE);
    let whole = ListRequest {
        prefix: "/r/".into(),
        ..ListRequest::default()
    };
    let page = list(&*store, whole.clone()).await;
    assert_eq!(
        (page.entries.len(), page.more),
        (written.len(), false),
        "all at once"
    );
    // Pages that the backend reads in one piece and pages that it reads in several.
    for limit in [MOST_READ_AT_ONCE - 100, 2 * MOST_READ_AT_ONCE - 100] {
        let mut paged = Vec::new();
        let mut request = ListRequest {
            limit,
            ..whole.clone()
        };
        loop {
            let page = list(&*store, request.clone()).await;
            assert!(page.entries.len() == limit || !page.more, "limit {limit}");
            paged.extend(page.entries);
            let Some(last) = paged.last().filter(|_| page.more) else {
                break;
            };
            request.start = format!("{}\0", last.key);
            request.at = Some(page.revision);
        }
        assert_eq!(paged, page.entries, "limit {limit}");
    }
}

/// The count follows creates and deletes, below the prefix only.
pub async fn count_is_of_the_present(store: Arc<dyn Storage>) {
    assert_eq!(store.count("/r/").await, Ok(0));
    create_letters(&*store, "ab").await;
    let c = create(&*store, "/r/c", "").await;
    create(&*store, "/rs/a", "").await;
    assert_eq!(store.count("/r/").await, Ok(3));
    delete(&*store, "/r/c", c).await;
    assert_eq!(store.count("/r/").await, Ok(2));
}

async fn create_letters(store: &dyn Storage, letters: &str) {
    for letter in letters.chars() {
        create(store, &format!("/r/{letter}"), "").await;
    }
}
