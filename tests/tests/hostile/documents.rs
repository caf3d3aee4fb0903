//! Documents that are deep, wide or wrong in every place: their cost and the size of the responses grow at most
//! linearly with their length (points 10 and 14).

use std::time::Duration;

use apiloom_tests::wardle::{FISCHERS, FLUNDERS};
use bytes::Bytes;

use crate::arena::Arena;
use crate::wire::{Answered, Call};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Bytes of the largest bodies.
const LARGE: usize = 3 * 1000 * 1000;

/// Maximum size of a response about a document.
const MAX_ANSWER: usize = 256 * 1024;

/// Maximum temporary memory for a document: its bytes, its tree with some dozen bytes per byte, its stored form, and the
/// owner of each of its fields.
const MEMORY_MIB: u64 = 256;

/// Maximum CPU time of the server for a document that is sent twice, in a build without optimization. Work that grows with the
/// square of these documents takes minutes.
const MAX_CPU: Duration = Duration::from_secs(30);

/// The attacks of this file: each sends one document.
struct Documents {
    arena: Arena,
}

impl Documents {
    fn start() -> Self {
        Self {
            arena: Arena::start(&[]),
        }
    }

    /// Creates a flunder with these additional members.
    fn flunder(&self, name: &str, members: &str) {
        let body = format!(r#"{{"metadata":{{"generateName":"d-"}},{members}}}"#);
        self.send(name, "POST", FLUNDERS, JSON, body);
    }

    /// Creates a flunder with these additional members of its metadata, as a dry run.
    fn metadata(&self, name: &str, members: &str) {
        let body = format!(r#"{{"metadata":{{"generateName":"d-",{members}}}}}"#);
        self.send(name, "POST", &format!("{FLUNDERS}?dryRun=All"), JSON, body);
    }

    /// Creates a fischer of these items, as a dry run: stored ones would be searched for each flunder.
    fn fischer(&self, name: &str, items: &str) {
        let body =
            format!(r#"{{"metadata":{{"generateName":"d-"}},"disallowedFlunders":[{items}]}}"#);
        self.send(name, "POST", &format!("{FISCHERS}?dryRun=All"), JSON, body);
    }

    /// Creates a flunder from YAML, with these additional lines.
    fn yaml(&self, name: &str, lines: &str) {
        let body = format!("metadata: {{generateName: d-}}\n{lines}");
        self.send(name, "POST", FLUNDERS, YAML, body);
    }

    /// Sends one document, as an attack.
    fn send(&self, name: &str, method: &str, path: &str, content_type: &str, body: String) {
        let document = Document {
            name,
            content_type,
            body: body.into(),
        };
        self.send_all(name, method, path, &[document]);
    }

    /// Sends documents one after the other, as one attack. Two clients send each of them, with different
    /// `fieldValidation`; each must get a response that is not large, and the work for both must be bounded. The deadline of
    /// writes, 34 s, is no measure of that work: on a busy machine it comes before the end of less.
    fn send_all(&self, attack: &str, method: &str, path: &str, documents: &[Document<'_>]) {
        self.arena.withstands(attack, MEMORY_MIB, async |target| {
            let http2 = target.http2(crate::wire::OPEN).await.unwrap();
            for document in documents {
                let Document {
                    name,
                    content_type,
                    body,
                } = document;
                assert!(body.len() <= 3 << 20, "{name} is as large as a body may be");
                let call = async |validation: &str| {
                    let next = if path.contains('?') { '&' } else { '?' };
                    let path = format!("{path}{next}fieldValidation={validation}");
                    let call = Call::new(method, &path);
                    http2.call(call.with_body(content_type, body.clone())).await
                };
                let load = self.arena.load();
                let (strict, warn) = tokio::join!(call("Strict"), call("Warn"));
                let cpu = load.cpu_of_attack();
                if cpu > MAX_CPU {
                    self.arena
                        .fail(attack, &format!("{name}: {cpu:?} of server CPU"));
                }
                for answer in [strict, warn] {
                    match answer {
                        Ok(answer) if is_good(&answer) => {}
                        Ok(answer) if answer.code == 504 && load.explains_timeout() => {
                            println!("{attack}: {name}: not answered in time by a busy machine");
                        }
                        other => self.arena.fail(attack, &format!("{name}: {other:?}")),
                    }
                }
            }
        });
    }
}

/// The body of a request.
struct Document<'a> {
    name: &'a str,
    content_type: &'a str,
    body: Bytes,
}

/// Whether a response describes the problems of a document and is small.
fn is_good(answer: &Answered) -> bool {
    match answer.code {
        200 | 201 => true,
        400..=499 => answer.bytes < MAX_ANSWER,
        _ => false,
    }
}

/// `item` for each number up to `count`, separated by commas.
fn listed(count: usize, item: impl Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..count).map(item).collect();
    items.join(",")
}

/// Point 10: metadata with very many members.
#[test]
fn wide_metadata() {
    let documents = Documents::start();
    let metadata = |name: &str, members: String| documents.metadata(name, &members);
    let references = listed(40_000, |index| format!(r#"{{"uid":"{index}"}}"#));
    metadata(
        "40,000 invalid ownerReferences",
        format!(r#""ownerReferences":[{references}]"#),
    );
    let references = listed(40_000, |index| {
        format!(r#"{{"apiVersion":"v1","kind":"A","name":"a","uid":"{index}"}}"#)
    });
    metadata(
        "40,000 ownerReferences",
        format!(r#""ownerReferences":[{references}]"#),
    );
    let finalizers = listed(100_000, |index| format!(r#""a.io/{index}""#));
    metadata(
        "100,000 finalizers",
        format!(r#""finalizers":[{finalizers}]"#),
    );
    let finalizers = listed(300_000, |_| r#""!""#.to_owned());
    metadata(
        "300,000 invalid finalizers",
        format!(r#""finalizers":[{finalizers}]"#),
    );
    let labels = listed(150_000, |index| format!(r#""l{index}":"v""#));
    metadata("150,000 labels", format!(r#""labels":{{{labels}}}"#));
    let labels = listed(150_000, |index| format!(r#""!{index}":"!""#));
    metadata(
        "150,000 invalid labels",
        format!(r#""labels":{{{labels}}}"#),
    );
    let annotations = listed(150_000, |index| format!(r#""a{index}":1"#));
    metadata(
        "150,000 annotations of a wrong type",
        format!(r#""annotations":{{{annotations}}}"#),
    );
}

/// Point 10: list items that are wrong, empty or need decoding.
#[test]
fn wide_lists() {
    let documents = Documents::start();
    let list = |name: &str, items: String| documents.fischer(name, &items);
    list(
        "500,000 items of a wrong type",
        listed(500_000, |_| "1".to_owned()),
    );
    list("500,000 null items", listed(500_000, |_| "null".to_owned()));
    list(
        "700,000 empty items",
        listed(700_000, |_| r#""""#.to_owned()),
    );
    list(
        "a string of escapes",
        format!(r#""{}""#, r"\u0041".repeat(LARGE / 6)),
    );
}

/// Point 10: members that are duplicate, unknown or of the wrong type, each of which causes a warning.
#[test]
fn documents_that_are_wrong_everywhere() {
    let documents = Documents::start();
    let flunder = |name: &str, members: String| documents.flunder(name, &members);
    flunder(
        "one null member 300,000 times",
        listed(300_000, |_| r#""a":null"#.to_owned()),
    );
    flunder(
        "300,000 null members",
        listed(200_000, |index| format!(r#""a{index}":null"#)),
    );
    flunder(
        "every null member twice",
        listed(200_000, |index| format!(r#""a{}":null"#, index / 2)),
    );
    flunder(
        "one known null member 200,000 times",
        listed(200_000, |_| r#""spec":null"#.to_owned()),
    );
    flunder(
        "150,000 unknown members",
        listed(150_000, |index| format!(r#""a{index}":{{}}"#)),
    );
    let pairs = listed(200_000, |index| format!(r#""a{index}":1"#));
    flunder(
        "200,000 unknown members of spec",
        format!(r#""spec":{{{pairs}}}"#),
    );
    let key = "k".repeat(1_000_000);
    let twice = listed(300_000, |index| format!(r#""a":{}"#, index % 10));
    flunder(
        "members that come twice below a long name",
        format!(r#""{key}":{{{twice}}}"#),
    );
    let nested = format!(r#""spec":{{"{key}":{{{twice}}}}}"#);
    flunder("the same in spec", nested);
    flunder(
        "a number of 3 MB",
        format!(r#""spec":{{"reference":{}}}"#, "9".repeat(LARGE)),
    );
    flunder(
        "a fraction of 3 MB",
        format!(r#""x":0.{}1"#, "0".repeat(LARGE)),
    );
}

/// Point 14: deeply nested documents.
#[test]
fn deep_documents() {
    let documents = Documents::start();
    let json = |name: &'static str, open: &str, close: &str, count: usize| Document {
        name,
        content_type: JSON,
        body: format!(
            r#"{{"metadata":{{"generateName":"d-"}},"a":{}{}}}"#,
            open.repeat(count),
            close.repeat(count)
        )
        .into(),
    };
    let deep_json = [
        json("a million arrays", "[", "]", 1_000_000),
        json("arrays without their ends", "[", "", LARGE),
        json("objects and arrays by turns", r#"{"a":["#, "]}", 150_000),
        json("objects without their ends", r#"{"a":"#, "", 500_000),
        json("brackets in a string", "\"[[[[[[[[[[\"", "", 1),
        json("9,999 arrays", "[", "]", 9_999),
    ];
    documents.send_all("deep JSON", "POST", FLUNDERS, &deep_json);
    let yaml = |name: &'static str, lines: String| Document {
        name,
        content_type: YAML,
        body: format!("metadata: {{generateName: d-}}\n{lines}").into(),
    };
    let indented: String = (0..2_000)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    let deep_yaml = [
        yaml("a million arrays", format!("a: {}", "[".repeat(1_000_000))),
        yaml(
            "objects in a line",
            format!("a: {}", "{a: ".repeat(500_000)),
        ),
        yaml(
            "items of items",
            format!("a:\n{} x\n", "- ".repeat(500_000)),
        ),
        yaml(
            "mappings in a line",
            format!("a:\n{}x\n", "? ".repeat(500_000)),
        ),
        yaml("indented", indented),
        yaml(
            "tags and anchors",
            format!("a: {}", "!!seq [".repeat(200_000)),
        ),
        yaml("a million documents", "---\n".repeat(500_000)),
    ];
    documents.send_all("deep YAML", "POST", FLUNDERS, &deep_yaml);
    let hidden = [
        // Text that only looks like the end of a bracket: quoted, in a comment, in a block.
        yaml(
            "brackets in strings",
            format!("a: {}", r#"["]", "#.repeat(100_000)),
        ),
        yaml(
            "brackets in single quotes",
            format!("a: {}", "[']', ".repeat(100_000)),
        ),
        yaml(
            "carriage returns",
            format!("a: {}", "[ #\r]\r".repeat(100_000)),
        ),
        yaml(
            "few brackets in strings",
            format!("a: {}", r#"["]",""#.repeat(90)),
        ),
        yaml("lone carriage returns", format!("a:{}", "\r- ".repeat(200))),
        yaml("carriage returns as indentation", {
            let lines = (0..500).map(|depth| format!("{}a:\r", " ".repeat(depth)));
            lines.collect()
        }),
    ];
    documents.send_all("YAML with hidden depth", "POST", FLUNDERS, &hidden);
}

/// Points 9 and 10: long YAML. Its cost is linear, but the parser needs 30 us per key in a build without optimization
/// (2 us with it), which limits the number of keys; a search of each among all others would still be noticed.
#[test]
fn long_yaml() {
    let documents = Documents::start();
    let yaml = |name: &str, lines: String| documents.yaml(name, &lines);
    yaml("YAML: keys that come twice", "a: 1\n".repeat(20_000));
    yaml(
        "YAML: many keys",
        (0..10_000).map(|index| format!("a{index}: 1\n")).collect(),
    );
    yaml(
        "YAML: one folded string",
        format!("a: >\n{}", "  x\n".repeat(600_000)),
    );
    yaml(
        "YAML: one quoted string",
        format!("a: \"{}\"", "\\n\n\n".repeat(500_000)),
    );
}

/// Point 10: patches whose operations each traverse or move large values.
#[test]
fn costly_patches() {
    let documents = Documents::start();
    let list = listed(100_000, |index| format!(r#""{index}""#));
    let fischer = format!(r#"{{"metadata":{{"name":"patched"}},"disallowedFlunders":[{list}]}}"#);
    let fischer = serde_json::from_str(&fischer).unwrap();
    let arena = &documents.arena;
    arena.prepare(arena.target().create_all(FISCHERS, &[fischer]));
    let path = format!("{FISCHERS}/patched");
    let patch = |name: &str, content_type: &str, body: String| {
        documents.send(name, "PATCH", &path, content_type, body);
    };
    let operations = |operation: &str| format!("[{}]", listed(10_000, |_| operation.to_owned()));
    let insert = r#"{"op":"add","path":"/disallowedFlunders/0","value":"x"}"#;
    patch("10,000 insertions", JSON_PATCH, operations(insert));
    let remove = r#"{"op":"remove","path":"/disallowedFlunders/0"}"#;
    patch("10,000 removals", JSON_PATCH, operations(remove));
    let moved =
        r#"{"op":"move","from":"/disallowedFlunders/0","path":"/disallowedFlunders/90000"}"#;
    patch("10,000 moves", JSON_PATCH, operations(moved));
    let copied = r#"{"op":"copy","from":"/disallowedFlunders","path":"/x"}"#;
    patch("10,000 copies", JSON_PATCH, operations(copied));
    let test = format!(r#"[{{"op":"test","path":"/disallowedFlunders","value":[{list}]}}]"#);
    patch("a test of all", JSON_PATCH, test);
    let deep = format!(
        r#"[{{"op":"add","path":"{}","value":1}}]"#,
        "/a".repeat(LARGE / 4)
    );
    patch("a path of 1.5 MB", JSON_PATCH, deep);
    let key = "k".repeat(1_000_000);
    let twice = listed(300_000, |index| format!(r#""a":{}"#, index % 10));
    patch(
        "a merge with members that come twice",
        MERGE_PATCH,
        format!(r#"{{"{key}":{{{twice}}}}}"#),
    );
    let unknown = listed(200_000, |index| format!(r#""a{index}":{{}}"#));
    patch(
        "a merge of unknown members",
        MERGE_PATCH,
        format!("{{{unknown}}}"),
    );
    patch(
        "a merge that is deep",
        MERGE_PATCH,
        r#"{"a":"#.repeat(500_000),
    );
    patch(
        "a merge of nulls",
        MERGE_PATCH,
        format!(
            "{{{}}}",
            listed(200_000, |index| format!(r#""a{index}":null"#))
        ),
    );
}
