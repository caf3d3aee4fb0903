//! Objects that grow: no object is larger than the maximum body, and the memory for the history of objects is limited
//! in bytes (point 9).

use apiloom_tests::wardle::FISCHERS;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::arena::Arena;
use crate::wire::{Call, Target};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// The maximum size of an object, equal to that of a body.
const MAX_OBJECT: usize = 3 * 1024 * 1024;

/// Creates a fischer for patches that grow it.
fn arena_with_fischer(args: &[&str]) -> Arena {
    let arena = Arena::start(args);
    let fischer = json!({"metadata": {"name": "grown"}, "disallowedFlunders": ["x"]});
    arena.prepare(arena.target().create_all(FISCHERS, &[fischer]));
    arena
}

/// Sends a body. The response must not contain an object above the maximum size.
async fn send(
    arena: &Arena,
    name: &str,
    target: &Target,
    method: &str,
    content_type: &str,
    body: &Bytes,
) -> u16 {
    let grown = format!("{FISCHERS}/grown");
    let path = if method == "POST" { FISCHERS } else { &grown };
    let call = Call::new(method, path).with_body(content_type, body.clone());
    let answer = target.call(call).await.unwrap();
    if !matches!(answer.code, 200 | 201 | 400 | 413 | 422) || answer.bytes > MAX_OBJECT + 1024 {
        arena.fail(name, &format!("{answer:?}"));
    }
    answer.code
}

#[test]
fn patches_that_grow_an_object() {
    let arena = arena_with_fischer(&[]);
    let patch = |name: &str, times: usize, content_type: &str, patch: Value| {
        let body = Bytes::from(patch.to_string());
        // Some copies of an object of 3 MiB and of the patch: decoded, merged, encoded, in the log of changes.
        arena.withstands(name, 128, async |target| {
            for _ in 0..times {
                send(&arena, name, &target, "PATCH", content_type, &body).await;
            }
        });
    };
    let text = "x".repeat(1 << 20);
    let add = json!([{"op": "add", "path": "/disallowedFlunders/-", "value": text}]);
    patch("patches that add to a list", 6, JSON_PATCH, add);
    // One operation takes 1 MiB, and 60 copy it.
    let reset = json!({"op": "replace", "path": "/disallowedFlunders", "value": [text]});
    let copy =
        json!({"op": "copy", "from": "/disallowedFlunders/0", "path": "/disallowedFlunders/-"});
    let mut copies = vec![reset];
    copies.resize(61, copy);
    patch("patches that copy", 2, JSON_PATCH, json!(copies));
    // Each operation doubles the value of the first one: 25 of them would make 32 GiB.
    let first = json!({"op": "add", "path": "/disallowedFlunders", "value": ["x".repeat(1 << 10)]});
    let double =
        json!({"op": "copy", "from": "/disallowedFlunders", "path": "/disallowedFlunders/-"});
    let mut doublings = vec![first];
    doublings.resize(26, double);
    patch("patches that double", 2, JSON_PATCH, json!(doublings));
    let annotations: serde_json::Map<_, _> = (0..2)
        .map(|index| (format!("a{index}"), json!(text)))
        .collect();
    let merge = json!({"metadata": {"annotations": annotations}});
    patch("patches that merge annotations", 4, MERGE_PATCH, merge);
}

#[test]
fn yaml_aliases() {
    let arena = Arena::start(&[]);
    let refuses = |name: &str, lines: String| {
        let body = Bytes::from(format!("metadata: {{generateName: yaml-}}\n{lines}"));
        // The expanded tree of the aliases, up to its limit.
        arena.withstands(name, 128, async |target| {
            let code = send(&arena, name, &target, "POST", "application/yaml", &body).await;
            assert!((400..500).contains(&code), "{name}: {code}");
        });
    };
    // 1 MB that aliases expand to 61 MB.
    let text = "x".repeat(1_000_000);
    let aliases = ", *a".repeat(60);
    refuses(
        "YAML aliases of one large value",
        format!("disallowedFlunders: [&a {text}{aliases}]\n"),
    );
    // Each list has nine copies of the one before: 9^8 strings.
    let mut lists = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..8 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        lists += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    refuses("YAML aliases of aliases", lists);
    let aliases = ", *a".repeat(200_000);
    refuses(
        "200,000 YAML aliases",
        format!("a: &a []\ndisallowedFlunders: [x{aliases}]\n"),
    );
    let anchors: String = (0..100_000)
        .map(|index| format!("- &a{index} x\n"))
        .collect();
    refuses(
        "100,000 YAML anchors",
        format!("disallowedFlunders:\n{anchors}"),
    );
}

/// 160 updates of an object of 256 KiB: history, 2 MiB here, and the cache of rendered events are limited in bytes. The
/// store keeps its history on disk. If all 40 MiB were kept, memory would grow by 85 MiB and not by 45.
#[test]
fn updates_of_large_objects() {
    let arena = arena_with_fischer(&[
        "--storage-backend=embedded",
        "--watch-cache-history-bytes=2097152",
    ]);
    let name = "updates of large objects";
    arena.withstands(name, 64, async |target| {
        for round in 0..160 {
            let text = round.to_string() + &"x".repeat(256 << 10);
            let patch = json!({"disallowedFlunders": [text]});
            let patch = Bytes::from(patch.to_string());
            let code = send(&arena, name, &target, "PATCH", MERGE_PATCH, &patch).await;
            assert_eq!(code, 200, "{name}");
        }
    });
}
