//! Selectors with very many terms (point 11): parsing and evaluating one must not block other requests.

use apiloom_tests::wardle::{ALL_FLUNDERS, FLUNDERS, flunder};
use futures_util::future::join_all;
use serde_json::json;

use crate::arena::Arena;
use crate::wire::{Call, OPEN};

/// Objects for which selectors are evaluated.
const OBJECTS: usize = 1000;

/// Some MiB per client: its terms, and pointers to the objects to evaluate.
const MEMORY_MIB: u64 = 96;

fn arena_with_objects() -> Arena {
    let arena = Arena::start(&[]);
    let objects: Vec<_> = (0..OBJECTS)
        .map(|index| {
            let mut object = flunder(&format!("selected-{index}"));
            object["metadata"]["labels"] = json!({"a": "b"});
            object
        })
        .collect();
    arena.prepare(arena.target().create_all(FLUNDERS, &objects));
    arena
}

/// A letter or digit for each number, none of them `a`.
fn symbol(index: usize) -> char {
    const SYMBOLS: &[u8; 35] = b"bcdefghijklmnopqrstuvwxyz0123456789";
    char::from(SYMBOLS[index % SYMBOLS.len()])
}

/// 20,000 of the shortest terms that all objects satisfy, and one that none does: all of them are evaluated.
fn terms_20_000() -> String {
    let terms: String = (0..20_000)
        .map(|index| format!("!{},", symbol(index)))
        .collect();
    format!("labelSelector={terms}aa")
}

/// One term with 20,000 values, which no object has.
fn values_20_000() -> String {
    let value = |index| format!("{}{}", symbol(index), symbol(index / 35));
    let values: Vec<String> = (0..20_000).map(value).collect();
    format!("labelSelector=a+in+({})", values.join(","))
}

/// 9,000 different terms that all objects satisfy, and one that none does.
fn terms_9_000() -> String {
    let terms: String = (0..9_000).map(|index| format!("!b{index:x},")).collect();
    format!("labelSelector={terms}aa")
}

/// One term with 9,000 different values, which no object has.
fn values_9_000() -> String {
    let values: Vec<String> = (0..9_000).map(|index| format!("b{index:x}")).collect();
    format!("labelSelector=a+in+({})", values.join(","))
}

/// 2,500 field terms that all objects satisfy, and one that none does.
fn field_terms_2_500() -> String {
    let terms: String = (0..2_500)
        .map(|index| format!("metadata.name!=b{index:x},"))
        .collect();
    format!("fieldSelector={terms}metadata.name=aa")
}

/// 20 watches with 9,000 terms and all objects as initial events, none of which is selected.
#[test]
fn watches_of_9_000_terms() {
    let arena = arena_with_objects();
    let attacks = [
        ("watches of 9,000 terms", terms_9_000()),
        ("watches of one term of 9,000 values", values_9_000()),
        ("watches of 2,500 terms of fields", field_terms_2_500()),
    ];
    for (name, query) in attacks {
        let path = format!("{ALL_FLUNDERS}?watch=1&{query}");
        arena.withstands(name, MEMORY_MIB, async |target| {
            let http2 = target.http2(OPEN).await.unwrap();
            let calls = (0..20).map(|_| http2.open(Call::new("GET", &path)));
            let watches = join_all(calls).await;
            for watch in &watches {
                assert_eq!(watch.as_ref().unwrap().code, 200, "{name}");
            }
            (http2, watches)
        });
    }
}

/// 20 concurrent lists with 20,000 terms, over HTTP/1.1, which allows longer heads.
#[test]
fn lists_of_20_000_terms() {
    let arena = arena_with_objects();
    let terms = terms_20_000();
    let attacks = [
        ("lists of 20,000 terms", terms.clone()),
        ("pages of 20,000 terms", format!("limit=1&{terms}")),
        ("lists of one term of 20,000 values", values_20_000()),
    ];
    for (name, query) in attacks {
        let path = format!("{ALL_FLUNDERS}?{query}");
        arena.withstands(name, MEMORY_MIB, async |target| {
            let answers = join_all((0..20).map(|_| target.get_http1(&path))).await;
            for answer in answers {
                let answer = answer.unwrap();
                assert_eq!(answer.code, 200, "{name}: {answer:?}");
            }
        });
    }
}

/// 20 open watches with 20,000 terms, which are evaluated for each write of the other user.
#[test]
fn open_watches_of_20_000_terms() {
    let arena = arena_with_objects();
    let query =
        "watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let path = format!("{ALL_FLUNDERS}?{query}&{}", terms_20_000());
    arena.withstands("open watches of 20,000 terms", MEMORY_MIB, async |target| {
        let head = target.head("GET", &path, &[]);
        join_all((0..20).map(|_| target.open_http1(&head))).await
    });
}
