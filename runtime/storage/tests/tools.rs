//! Check, export and import of a store that no server has open.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::path::Path;
use std::time::Duration;

use apiloom_storage::conformance::run;
use apiloom_storage::{
    Embedded, EmbeddedConfig, ListRequest, Revision, Storage, StorageError, WatchItem, WatchStart,
};
use futures_util::StreamExt;
use tempfile::{TempDir, tempdir};

/// A store with values of every kind, whose newest revision is a delete.
async fn filled() -> TempDir {
    let dir = tempdir().unwrap();
    let store = open(dir.path());
    let json = r#"{"kind":"Flunder","z":1.0,"a":[1e3,"ü"]}"#;
    let create = async |key: &str, value: &'static [u8]| {
        store.create(key, value.into(), None).await.unwrap()
    };
    let a = create("/r/a", json.as_bytes()).await;
    create("/r/b", b"{\n\"pretty\": true\n}").await;
    create("/r/c", b" 1 ").await;
    create("/r/d", b"k8s\0\xff\xfe").await;
    create("/r/e", b"").await;
    create("/r/\"f\"", b"null").await;
    let ttl = Some(Duration::from_secs(3_600));
    store.create("/r/g", "1".into(), ttl).await.unwrap();
    store.update_if("/r/a", a, "{}".into(), None).await.unwrap();
    let gone = create("/r/gone", b"1").await;
    store.delete_if("/r/gone", gone).await.unwrap();
    store.close().await;
    dir
}

/// A store whose first write gets revision 1.
fn open(dir: &Path) -> std::sync::Arc<Embedded> {
    let config = EmbeddedConfig {
        begin_after: Some(Revision(0)),
        ..EmbeddedConfig::default()
    };
    Embedded::open(dir, config).unwrap()
}

/// The lines of an export without the last one, and the revision in the last one.
fn end_of(lines: &str) -> (&str, u64) {
    let (objects, end) = lines.trim_end().rsplit_once('\n').unwrap_or(("", lines));
    let revision = end.strip_prefix("{\"revision\":").unwrap();
    (
        objects,
        revision.split_once(',').unwrap().0.parse().unwrap(),
    )
}

fn export(dir: &Path) -> String {
    let mut lines = Vec::new();
    Embedded::export(dir, &mut lines).unwrap();
    String::from_utf8(lines).unwrap()
}

fn import(dir: &Path, lines: &str) -> Result<u64, String> {
    Embedded::import(dir, &mut lines.as_bytes())
        .map(|moved| moved.objects)
        .map_err(|error| error.to_string())
}

#[test]
fn export_has_a_line_for_each_object_and_one_for_the_end() {
    run(async {
        let lines = export(filled().await.path());
        let expires = lines
            .split_once("\"expires\":")
            .and_then(|(_, rest)| rest.split_once(','))
            .unwrap()
            .0;
        assert_eq!(
            lines.replace(expires, "T"),
            [
                r#"{"key":"/r/\"f\"","revision":6,"value":null}"#,
                r#"{"key":"/r/a","revision":8,"value":{}}"#,
                r#"{"key":"/r/b","revision":2,"base64":"ewoicHJldHR5IjogdHJ1ZQp9"}"#,
                r#"{"key":"/r/c","revision":3,"base64":"IDEg"}"#,
                r#"{"key":"/r/d","revision":4,"base64":"azhzAP/+"}"#,
                r#"{"key":"/r/e","revision":5,"base64":""}"#,
                r#"{"key":"/r/g","revision":7,"expires":T,"value":1}"#,
                r#"{"revision":10,"objects":7}"#,
                "",
            ]
            .join("\n")
        );
    });
}

#[test]
fn import_of_an_export_is_the_same_store() {
    run(async {
        let dir = filled().await;
        let lines = export(dir.path());
        let new = tempdir().unwrap();
        assert_eq!(import(&new.path().join("store"), &lines), Ok(7));
        let new = new.path().join("store");
        // Revisions that clients remember from after an export are too old for the store made of it.
        let ((objects, old_end), again) = (end_of(&lines), export(&new));
        let (objects_again, end) = end_of(&again);
        assert_eq!(objects_again, objects);
        assert_eq!(old_end, 10);
        assert!(end > 1_700_000_000_000_000, "{end} is of the clock");
        assert_eq!(Embedded::check(&new).unwrap().damage, [""; 0]);

        let (old, new) = (open(dir.path()), open(&new));
        let all = ListRequest::default;
        let listed = new.list(all()).await.unwrap();
        assert_eq!(listed.entries, old.list(all()).await.unwrap().entries);
        for past in [9, 10, 11, end - 1] {
            let refused = new.watch("", WatchStart::After(Revision(past))).await.err();
            assert!(matches!(refused, Some(StorageError::Compacted { .. })));
        }
        let mut changes = new
            .watch("", WatchStart::After(Revision(end)))
            .await
            .unwrap();
        let next = new.create("/r/next", "1".into(), None).await;
        assert_eq!(next, Ok(Revision(end + 1)));
        let next = new.update_if("/r/a", Revision(8), "2".into(), None).await;
        assert_eq!(next, Ok(Revision(end + 2)));
        let mut seen = Vec::new();
        while seen.len() < 2 {
            if let WatchItem::Event(event) = changes.next().await.unwrap().unwrap() {
                seen.push((event.key, event.previous.is_some()));
            }
        }
        assert_eq!(seen, [("/r/next".into(), false), ("/r/a".into(), true)]);
        new.compact(Revision(end + 2)).await.unwrap();
        assert_eq!(new.count("/r/").await, Ok(8));
        old.close().await;
        new.close().await;
    });
}

#[test]
fn import_never_goes_back_behind_the_export() {
    run(async {
        // Later than every clock.
        let last = 1 << 60;
        let dir = tempdir().unwrap();
        let end = format!(r#"{{"revision":{last},"objects":0}}"#);
        assert_eq!(import(dir.path(), &end), Ok(0));
        let store = open(dir.path());
        let next = store.create("/r/a", "1".into(), None).await;
        assert_eq!(next, Ok(Revision(last + 1)));
        store.close().await;
    });
}

#[test]
fn import_of_what_is_no_export_leaves_nothing() {
    let check = |lines: &[&str], expected: &str| {
        let dir = tempdir().unwrap();
        let error = import(dir.path(), &lines.join("\n")).unwrap_err();
        assert!(error.contains(expected), "{lines:?}: {error}");
        let names: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|file| file.unwrap().file_name())
            .filter(|name| name != "store.lock")
            .collect();
        assert_eq!(names, [""; 0], "{lines:?}");
        assert_eq!(import(dir.path(), r#"{"revision":1}"#), Ok(0));
    };
    let a = r#"{"key":"/r/a","revision":2,"value":1}"#;
    let end = r#"{"revision":2,"objects":1}"#;
    check(&[], "the end of the export is missing");
    check(&[a], r#"add the line {"revision":2,"objects":1}"#);
    check(&["{"], "line 1: EOF");
    check(&[a, r#"{"key":"/r/b","rev"#], "line 2: EOF");
    check(&[a, end, a], "line 3: it follows the last line");
    check(&[a, a, end], "line 2: key \"/r/a\" is there twice");
    check(
        &[
            a,
            &a.replace("/r/a", "/r/b"),
            r#"{"revision":2,"objects":2}"#,
        ],
        "revision 2 is there twice",
    );
    check(
        &[a, r#"{"revision":2,"objects":2}"#],
        "2 objects were exported, and 1 are here",
    );
    check(
        &[a, r#"{"revision":1,"objects":1}"#],
        "an object has revision 2, later than the store's 1",
    );
    check(
        &[r#"{"key":"/r/a","revision":0,"value":1}"#, end],
        "no revision that an object may have",
    );
    check(
        &[r#"{"key":"/r/a","revision":1}"#, end],
        "either \"value\" or \"base64\"",
    );
    check(
        &[r#"{"key":"/r/a","revision":1,"base64":"*"}"#, end],
        "base64",
    );
    check(
        &[r#"{"key":"/r/a","revision":1,"value":1,"more":1}"#, end],
        "unknown field `more`",
    );
}

#[test]
fn import_into_a_directory_with_a_store_is_refused() {
    run(async {
        let dir = filled().await;
        let lines = export(dir.path());
        let error = import(dir.path(), &lines).unwrap_err();
        assert!(error.contains("there is a store in"), "{error}");
        assert_eq!(export(dir.path()), lines);
    });
}

#[test]
fn store_that_is_open_or_missing_is_refused() {
    run(async {
        let dir = filled().await;
        let store = open(dir.path());
        let check = |error: String, expected: &str| assert!(error.contains(expected), "{error}");
        check(
            Embedded::check(dir.path()).unwrap_err().to_string(),
            "in use by another process",
        );
        store.close().await;
        let nothing = dir.path().join("nothing");
        check(
            Embedded::check(&nothing).unwrap_err().to_string(),
            "there is no store in",
        );
        check(
            Embedded::export(&nothing, &mut Vec::new())
                .unwrap_err()
                .to_string(),
            "there is no store in",
        );
        assert!(!nothing.exists());
    });
}

#[test]
fn check_counts_and_names_what_is_damaged() {
    run(async {
        let dir = filled().await;
        let checked = Embedded::check(dir.path()).unwrap();
        assert_eq!(
            (
                checked.objects,
                checked.kept,
                checked.revision,
                checked.compacted
            ),
            (7, 10, 10, 0)
        );
        assert_eq!(checked.damage, [""; 0]);
        rusqlite::Connection::open(dir.path().join("store.db"))
            .unwrap()
            .execute_batch("UPDATE log SET value = x'00' WHERE revision IN (2, 9)")
            .unwrap();
        let damage = Embedded::check(dir.path()).unwrap().damage;
        for key in ["\"/r/b\"", "\"/r/gone\""] {
            assert!(damage.iter().any(|line| line.contains(key)), "{damage:?}");
        }
        let mut lines = Vec::new();
        let error = Embedded::export(dir.path(), &mut lines).unwrap_err();
        assert!(error.to_string().contains("\"/r/b\""), "{error}");
        assert!(!String::from_utf8(lines).unwrap().contains("objects"));
    });
}
