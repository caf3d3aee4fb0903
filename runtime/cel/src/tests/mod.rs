//! Tests of expressions and rules.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod checks;
mod compile_errors;
mod conditions;
mod costs;
mod expressions;
mod growth;
mod hostile;
mod kubernetes;
mod properties;
mod results;
mod rules;

use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value as Json, json};

use crate::program::Program;
use crate::rules::MAX_CALL_COST;
use crate::schema::Decl;
use crate::scope::Scope;
use crate::stop::Stop;
use crate::value::Value;

/// The CPU time of this thread: on a busy machine an evaluation waits for a core.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap(),
        time.tv_nsec.try_into().unwrap(),
    )
}

/// A schema with a value of every form.
fn schema() -> Json {
    json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 20},
        "size": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "any": {"x-kubernetes-int-or-string": true},
        "word": {"x-kubernetes-int-or-string": true},
        "data": {"type": "string", "format": "byte"},
        "day": {"type": "string", "format": "date"},
        "time": {"type": "string", "format": "date-time"},
        "wait": {"type": "string", "format": "duration"},
        "gone": {"type": "string", "nullable": true},
        "a-b.c/d": {"type": "integer"},
        "a__b": {"type": "integer"},
        "namespace": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "more": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "port": {"type": "integer"}}}},
        "other": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "port": {"type": "integer"}}}},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true},
        "free": {"x-kubernetes-preserve-unknown-fields": true}}})
}

fn document() -> Json {
    json!({"name": "gr\u{fc}n", "size": 3, "ratio": 2, "flag": true, "any": 8080, "word": "50%", "data": "YWJj",
        "day": "2024-02-29", "time": "2024-02-29T12:30:45.5Z", "wait": "1h30m", "gone": null, "a-b.c/d": 1, "a__b": 2,
        "namespace": 3, "tags": ["a", "b"], "more": ["b", "a"], "numbers": [3, 1, 2], "labels": {"x": "1", "y": "2"},
        "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
        "other": [{"name": "https", "port": 443}, {"name": "http", "port": 80}],
        "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"a": [1]}},
        "free": {"any": ["thing"]}})
}

/// Evaluates an expression about the document. The error is that of types, or of the evaluation.
fn evaluate<T>(
    text: &str,
    limit: u64,
    read: impl FnOnce(&Value<'_>, u64) -> T,
) -> Result<T, String> {
    let decl = Arc::new(Decl::of(&schema(), false).unwrap());
    let program = Program::compile(text, &Scope::of_rule(&decl, false), &mut 0)?;
    let document = document();
    let this = Value::of(&document, &decl).unwrap();
    let values = [this];
    let (found, cost) = program.run(&values, limit);
    match found {
        Ok(value) => Ok(read(&value, cost)),
        Err(Stop::Cost) => Err("cost".to_owned()),
        Err(Stop::Error(text)) => Err(text.into_owned()),
    }
}

/// Checks that each expression is true.
#[track_caller]
fn check_true(all: &[&str]) {
    let mut wrong = Vec::new();
    for text in all {
        let found = evaluate(text, MAX_CALL_COST, |value, _| format!("{value:?}"));
        if found.as_deref() != Ok("Bool(true)") {
            wrong.push(format!("{text}\n    {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Checks that the error of each expression has a text in it.
#[track_caller]
fn check_errors(all: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, expected) in all {
        let found = evaluate(text, MAX_CALL_COST, |value, _| format!("{value:?}"));
        if !found.as_ref().is_err_and(|error| error.contains(expected)) {
            wrong.push(format!("{text}\n    {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
