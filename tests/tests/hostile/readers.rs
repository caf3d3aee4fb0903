//! Clients that do not read their responses (point 12): a waiting response needs little memory, in every format, and
//! has a timeout.

use apiloom_tests::wardle::{ALL_FLUNDERS, FLUNDERS, flunder};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::arena::Arena;
use crate::wire::{CLOSED, Call};

/// 40 objects of 200 KB: 8 MB of JSON, more than the kernel buffers for a client that does not read.
const OBJECTS: usize = 40;
const OBJECT_BYTES: usize = 200_000;

fn large_flunder(index: usize, fill: &str) -> Value {
    let mut object = flunder(&format!("read-{index}"));
    object["metadata"]["annotations"] = json!({"a": fill.repeat(OBJECT_BYTES)});
    object
}

fn arena_with_objects(count: usize, args: &[&str]) -> Arena {
    let arena = Arena::start(args);
    let objects: Vec<_> = (0..count).map(|index| large_flunder(index, "x")).collect();
    arena.prepare(arena.target().create_all(FLUNDERS, &objects));
    arena
}

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const PARTIAL: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The formats of lists: name, query, header and its value.
const FORMS: [(&str, &str, &str, &str); 7] = [
    ("JSON", "", "accept", "application/json"),
    ("indented JSON", "pretty=true", "accept", "application/json"),
    ("YAML", "", "accept", "application/yaml"),
    ("Table", "includeObject=Object", "accept", TABLE),
    ("PartialObjectMetadata", "", "accept", PARTIAL),
    ("gzip", "", "accept-encoding", "gzip"),
    (
        "past state",
        "limit=39&resourceVersion=0",
        "accept",
        "application/json",
    ),
];

/// Lists in every format, requested over HTTP/2 by a client with closed windows and over HTTP/1.1 by clients that do
/// not read: 20 of each at once.
#[test]
fn lists_that_are_not_read() {
    let arena = arena_with_objects(OBJECTS, &[]);
    for (name, query, header, value) in FORMS {
        let path = format!("{ALL_FLUNDERS}?{query}");
        // Besides a list that is being rendered as YAML, 20 responses hold a chunk of 64 KiB and some buffers each. What the
        // allocator keeps of 20 lists that are indented at once is 62 to 66 MiB in the build without optimization.
        let memory_mib = 80;
        arena.withstands(
            &format!("lists not read, {name}, HTTP/2"),
            memory_mib,
            async |target| {
                let http2 = target.http2(CLOSED).await.unwrap();
                let calls =
                    (0..20).map(|_| http2.open(Call::new("GET", &path).with_header(header, value)));
                let answers = join_all(calls).await;
                assert!(
                    answers
                        .iter()
                        .all(|answer| answer.as_ref().is_ok_and(|answer| answer.code == 200))
                );
                (http2, answers)
            },
        );
        arena.withstands(
            &format!("lists not read, {name}, HTTP/1.1"),
            memory_mib,
            async |target| {
                let head = target.head("GET", &path, &[(header, value)]);
                join_all((0..20).map(|_| target.open_http1(&head))).await
            },
        );
    }
}

/// Watches with all objects as initial events, which are not read.
#[test]
fn watches_that_are_not_read() {
    let arena = arena_with_objects(OBJECTS, &[]);
    for (name, accept) in [
        ("JSON", "application/json"),
        ("Table", "application/json;as=Table;g=meta.k8s.io;v=v1"),
    ] {
        let path = format!("{ALL_FLUNDERS}?watch=1&includeObject=Object");
        arena.withstands(
            &format!("watches not read, {name}, HTTP/2"),
            64,
            async |target| {
                let http2 = target.http2(CLOSED).await.unwrap();
                let calls = (0..50)
                    .map(|_| http2.open(Call::new("GET", &path).with_header("accept", accept)));
                let answers = join_all(calls).await;
                assert!(
                    answers
                        .iter()
                        .all(|answer| answer.as_ref().is_ok_and(|answer| answer.code == 200))
                );
                (http2, answers)
            },
        );
        arena.withstands(
            &format!("watches not read, {name}, HTTP/1.1"),
            64,
            async |target| {
                let head = target.head("GET", &path, &[("accept", accept)]);
                join_all((0..50).map(|_| target.open_http1(&head))).await
            },
        );
    }
}
