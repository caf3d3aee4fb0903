//! The writer, readers and watchers of a cache in schedules that a model checker chooses: each use of a lock or an
//! atomic is a scheduling point.

use futures_util::FutureExt;
use shuttle::scheduler::RandomScheduler;
use shuttle::thread;

use super::super::sync::as_model;
use super::*;
use crate::{Entry, Event, EventKind, WatchItem};

/// Schedules per scenario.
const SCHEDULES: usize = 400;

fn explore(scenario: fn()) {
    as_model(|| {
        let scheduler = RandomScheduler::new_from_seed(9, SCHEDULES);
        let runner = shuttle::Runner::new(scheduler, shuttle::Config::default());
        runner.run(scenario);
    });
}

/// A cache that is filled directly, at revision 1.
fn filled() -> Arc<WatchCache<Text>> {
    let store = Memory::new() as Arc<dyn Storage>;
    let cache = WatchCache::new(store, PREFIX, Text, Budget::new(Budget::DEFAULT_BYTES));
    cache.fill_with(vec![entry("/r/n/a", "x", 1)], Revision(1));
    cache
}

fn entry(key: &str, value: &str, revision: u64) -> Entry {
    Entry {
        key: key.to_owned(),
        value: Bytes::copy_from_slice(value.as_bytes()),
        revision: Revision(revision),
    }
}

fn write(cache: &WatchCache<Text>, writes: &[(&str, &str, u64)]) {
    let events = writes.iter().map(|(key, value, revision)| {
        WatchItem::Event(Event {
            kind: EventKind::Updated,
            key: (*key).to_owned(),
            value: Bytes::copy_from_slice(value.as_bytes()),
            previous: None,
            revision: Revision(*revision),
        })
    });
    cache.apply(events.collect());
}

/// The revisions that a cursor returns until it would wait. Changes that it left unread must wake it again.
fn rest(cursor: &mut Cursor<Text>, most: usize) -> Result<Vec<u64>, CursorEnd> {
    let mut taken = Vec::new();
    while cursor.changed().now_or_never().is_some() {
        cursor.take(most, &mut taken)?;
    }
    Ok(taken.iter().map(|change| change.revision.0).collect())
}

const WRITES: [(&str, &str, u64); 4] = [
    ("/r/n/a", "q", 2),
    ("/r/n/b", "q", 3),
    ("/r/m/a", "q", 4),
    ("/r/n/a", "x", 5),
];

/// An interest in the first index of a group that is not kept.
fn derived(group: u16, value: &str, below: Option<&str>) -> Interest {
    Interest::Indexed {
        index: group * INDEX_GROUP,
        value: value.into(),
        below: below.map(Into::into),
    }
}

fn interests() -> [(Interest, &'static [u64]); 8] {
    [
        (Interest::Everything, &[2, 3, 4, 5]),
        (Interest::Below("/r/n/".into()), &[2, 3, 5]),
        (Interest::Key("/r/n/a".into()), &[2, 5]),
        (indexed("q", None), &[2, 3, 4, 5]),
        (indexed("q", Some("/r/n/")), &[2, 3, 5]),
        (derived(DERIVED, "Q", None), &[2, 3, 4, 5]),
        (derived(DERIVED, "Q", Some("/r/n/")), &[2, 3, 5]),
        // A group whose values cannot be computed.
        (derived(DERIVED + 1, "Q", Some("/r/n/")), &[2, 3, 5]),
    ]
}

/// A watcher that registers at any moment sees every write, in its first state or as a change, in every interleaving.
fn registering(interest: &Interest, revisions: &'static [u64], most: usize) {
    let cache = filled();
    let writer = {
        let cache = Arc::clone(&cache);
        thread::spawn(move || {
            write(&cache, &WRITES[..2]);
            write(&cache, &WRITES[2..]);
        })
    };
    let leaver = {
        let (cache, interest) = (Arc::clone(&cache), interest.clone());
        thread::spawn(move || drop(cache.watch(interest, None)))
    };
    let (state, mut cursor) = cache.watch_with_state(interest.clone(), None).unwrap();
    // Another cursor, which reads while the writer writes.
    let mut early = rest(&mut cursor, most).unwrap();
    let idle = cursor.idle_at();
    writer.join().unwrap();
    leaver.join().unwrap();
    let late = rest(&mut cursor, most).unwrap();
    if let Some(idle) = idle {
        assert!(
            late.iter().all(|revision| *revision > idle.0),
            "{idle} {late:?}"
        );
    }
    early.extend(late);
    let after = revisions.iter().filter(|at| **at > state.revision().0);
    let expected: Vec<u64> = after.copied().collect();
    // A wake-up by an index may deliver other changes too, but not all of them.
    assert_eq!(early, expected, "{interest:?} after {}", state.revision());
    let wanted = |key: &str| interest.covers(key);
    assert!(
        state
            .range(PREFIX, "")
            .all(|item| item.revision <= state.revision() || !wanted(&item.key))
    );
}

#[test]
fn a_watcher_that_registers_while_changes_are_published_misses_none() {
    explore(|| {
        for (interest, revisions) in interests() {
            registering(&interest, revisions, usize::MAX);
        }
    });
}

#[test]
fn a_watcher_that_takes_one_at_a_time_misses_none() {
    explore(|| {
        for (interest, revisions) in interests() {
            registering(&interest, revisions, 1);
        }
    });
}

/// A cursor from before a refill gets an error for the missed changes; one from after it gets the following changes.
#[test]
fn a_refill_ends_the_cursors_from_before_it_and_no_others() {
    explore(|| {
        let cache = filled();
        let writer = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                write(&cache, &WRITES[..1]);
                cache.end_cursors(true);
                cache.fill_with(vec![entry("/r/n/a", "q", 3)], Revision(3));
                write(&cache, &WRITES[2..]);
            })
        };
        let opened = cache.watch_with_state(indexed("q", None), None);
        writer.join().unwrap();
        match opened {
            Err(error) => assert_eq!(error, OutsideWindow::NotFilled),
            Ok((state, mut cursor)) => {
                assert!(
                    cursor.changed().now_or_never().is_some() || state.revision() >= Revision(5)
                );
                let mut taken = Vec::new();
                let end = cursor.take(usize::MAX, &mut taken);
                if state.revision() < Revision(3) {
                    assert_eq!(end, Err(CursorEnd::Lost));
                } else {
                    assert_eq!(end, Ok(Revision(5)));
                }
                assert!(
                    end.is_err()
                        || taken
                            .iter()
                            .all(|change| change.revision > state.revision())
                );
                let count = u64::try_from(taken.len()).unwrap();
                assert!(
                    end.is_err() || count == 5 - state.revision().0,
                    "{count} after {}",
                    state.revision()
                );
            }
        }
    });
}

/// A resumed cursor gets every change after its revision or an error, while old changes leave the window.
#[test]
fn a_cursor_that_resumes_while_history_is_forgotten_misses_none() {
    explore(|| {
        let cache = filled();
        write(&cache, &WRITES[..2]);
        let writer = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                write(&cache, &WRITES[2..3]);
                cache.forget(Revision(2));
                cache.trim();
                write(&cache, &WRITES[3..]);
            })
        };
        let opened = cache.watch(indexed("q", None), Some(Revision(1)));
        let past = cache.snapshot_at(Revision(2));
        writer.join().unwrap();
        match opened.map(|mut cursor| rest(&mut cursor, 2)) {
            Ok(Ok(revisions)) => assert_eq!(revisions, [2, 3, 4, 5]),
            Ok(Err(end)) => assert_eq!(end, CursorEnd::Lagged),
            Err(error) => assert!(matches!(error, OutsideWindow::TooOld { .. })),
        }
        let past = past.unwrap();
        assert_eq!((past.len(), past.revision()), (1, Revision(2)));
        assert!(
            past.get("/r/n/a")
                .is_some_and(|item| item.revision == Revision(2))
        );
    });
}
