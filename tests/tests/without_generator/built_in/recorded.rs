//! What a real kube-apiserver, 1.36.2, answered about built-in kinds.
//!
//! - `recorded/mutations.jsonl` has odd values: each field of a good object taken away, emptied, doubled, negated, or set to another type,
//!   created under another name and put over the object. The first lines are the objects.
//! - `recorded/sequences.jsonl` has random sequences of applies, updates and patches of all types by three managers, whose conflicts and
//!   entries of `managedFields` each step shows.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http_body_util::Full;
use serde_json::{Value, json};

use super::BuiltIns;
use crate::in_process::read;

const MUTATIONS: &str = include_str!("recorded/mutations.jsonl");
const SEQUENCES: &str = include_str!("recorded/sequences.jsonl");

/// The cases that are answered otherwise, with the reason.
const OTHERWISE: &[(&str, &str)] = &[
    ("vwc|webhooks.0.sideEffects|num", TYPE_OF_TEXT),
    ("vwc|webhooks.0.failurePolicy|num", TYPE_OF_TEXT),
    ("vwc|webhooks.0.rules.0.operations.0|num", TYPE_OF_TEXT),
    ("vwc|webhooks.0.rules.0.apiGroups.0|num", EMBEDDED),
    ("vwc|webhooks.0.rules.0.apiVersions.0|num", EMBEDDED),
    ("vwc|webhooks.0.rules.0.resources.0|num", EMBEDDED),
    ("mwc|webhooks.0.sideEffects|num", TYPE_OF_TEXT),
    ("mwc|webhooks.0.failurePolicy|num", TYPE_OF_TEXT),
    ("mwc|webhooks.0.rules.0.operations.0|num", TYPE_OF_TEXT),
    ("mwc|webhooks.0.rules.0.apiGroups.0|num", EMBEDDED),
];

const TYPE_OF_TEXT: &str = "Go names the type of a text, which is a plain one here";

const EMBEDDED: &str = "Go names an embedded struct in the path of a field";

#[tokio::test]
async fn odd_values_are_answered_as_by_kubernetes() {
    let server = BuiltIns::new().await;
    let (bases, cases): (Vec<_>, Vec<_>) =
        lines(MUTATIONS).partition(|line| line.get("base").is_some());
    let bases: BTreeMap<_, _> = bases
        .iter()
        .map(|base| (text(&base["base"]), base))
        .collect();
    for base in bases.values() {
        let path = base["path"].as_str().unwrap();
        server.object("POST", path, base["object"].clone()).await;
    }
    let mut others = BTreeSet::new();
    let mut problems = Vec::new();
    for case in &cases {
        let base = bases[text(&case["of"])];
        let object = changed(&base["object"], case);
        let path = base["path"].as_str().unwrap();
        let requests = [
            (
                "create",
                "POST",
                format!("{path}?dryRun=All&fieldValidation=Strict"),
            ),
            (
                "put",
                "PUT",
                format!(
                    "{path}/{}?dryRun=All",
                    text(&base["object"]["metadata"]["name"])
                ),
            ),
        ];
        for (form, method, url) in requests {
            let Some(expected) = case.get(form) else {
                continue;
            };
            let mut object = object.clone();
            let keeps_name = text(&case["at"]).starts_with("/metadata/name");
            if form == "create" && !keeps_name {
                object["metadata"]["name"] = json!("m");
            }
            let (code, answer) = server.send(method, &url, &object).await;
            let answer = json!([code, shown(form, code, answer, expected)]);
            if answer != *expected {
                let name = text(&case["case"]);
                if OTHERWISE.iter().any(|(other, _)| *other == name) {
                    others.insert(name);
                } else {
                    problems.push(format!("{name} {form}\n real {expected}\n ours {answer}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let stale: Vec<_> = OTHERWISE
        .iter()
        .filter(|(case, _)| !others.contains(case))
        .collect();
    assert!(stale.is_empty(), "answered alike by now: {stale:?}");
    server.stop().await;
}

fn lines(recorded: &str) -> impl Iterator<Item = Value> {
    recorded
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
}

#[tokio::test]
async fn changes_by_several_managers_are_answered_as_by_kubernetes() {
    let server = BuiltIns::new().await;
    for step in lines(SEQUENCES) {
        let request = http::Request::builder()
            .method(text(&step["method"]))
            .uri(text(&step["path"]))
            .header("content-type", text(&step["type"]))
            .body(Full::new(Bytes::from(step["body"].to_string())));
        let (code, answer) = read(server.loopback.send(request.unwrap()).await).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let shown = if code < 400 {
            json!([code, as_recorded(answer)])
        } else {
            json!([code, {"reason": answer["reason"], "message": answer["message"], "causes": causes(&answer)}])
        };
        let mut expected = step["answer"].clone();
        if code < 400 {
            sort_entries(&mut expected);
        } else if expected.get("causes").is_none() {
            expected["causes"] = Value::Null;
        }
        assert_eq!(shown, json!([step["code"], expected]), "{step}");
    }
    server.stop().await;
}

/// An object with words in place of what the server generates, and its entries in an order that no second decides.
fn as_recorded(mut object: Value) -> Value {
    let metadata = &mut object["metadata"];
    for name in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata[name] = json!("~");
    }
    // An object that only applies of no field made has no entries.
    let entries = metadata.get_mut("managedFields");
    for entry in entries
        .into_iter()
        .flat_map(|entries| entries.as_array_mut().unwrap())
    {
        if let Some(time) = entry.get_mut("time") {
            *time = json!("~");
        }
    }
    sort_entries(&mut object);
    object
}

fn sort_entries(object: &mut Value) {
    if let Some(entries) = object["metadata"].get_mut("managedFields") {
        let entries = entries.as_array_mut().unwrap();
        entries.sort_by_key(|entry| [&entry["manager"], &entry["operation"]].map(Value::to_string));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The object of a case: with another value at its place, or with none.
fn changed(object: &Value, case: &Value) -> Value {
    let mut object = object.clone();
    let (parent, last) = text(&case["at"]).rsplit_once('/').unwrap();
    let last = last.replace("~1", "/").replace("~0", "~");
    match (object.pointer_mut(parent).unwrap(), case.get("set")) {
        (Value::Object(fields), Some(value)) => {
            fields.insert(last, value.clone());
        }
        (Value::Object(fields), None) => {
            fields.remove(&last).unwrap();
        }
        (Value::Array(items), Some(value)) => items[last.parse::<usize>().unwrap()] = value.clone(),
        (other, _) => panic!("{case} is in {other}"),
    }
    object
}

/// An answer as it is recorded: of errors the reason, the message unless there are causes, and the causes in order; of created objects all but
/// what the server generates.
fn shown(form: &str, code: u16, answer: Value, expected: &Value) -> Value {
    if code < 400 {
        return match form {
            "put" => json!("ok"),
            _ => generated_as_a_word(answer),
        };
    }
    let mut shown = json!({"reason": answer["reason"]});
    if let Some(causes) = causes(&answer) {
        shown["causes"] = causes;
    }
    if expected[1].get("message").is_some() {
        shown["message"] = answer["message"].clone();
    }
    shown
}

/// The causes of an error in the order of the record: the real ones have that of a map in Go.
fn causes(answer: &Value) -> Option<Value> {
    let mut causes = answer["details"]["causes"].as_array()?.clone();
    causes.sort_by_key(|cause| [&cause["field"], &cause["message"]].map(Value::to_string));
    Some(causes.into())
}

fn generated_as_a_word(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("managedFields");
    metadata.remove("resourceVersion");
    for name in ["uid", "creationTimestamp"] {
        metadata.insert(name.to_owned(), json!("~"));
    }
    object
}
