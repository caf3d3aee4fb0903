//! The time of 20 rules for an object of 2 KiB: `cargo run --release -p apiloom-benches --example rule_cost`.

#![allow(clippy::print_stdout, reason = "the example prints its measurement")]

use std::time::Instant;

use apiloom_cel::compile;
use apiloom_meta::field::FieldPath;
use serde_json::{Value, json};

const RULES: [&str; 20] = [
    "self.replicas >= self.min && self.replicas <= self.max",
    "self.min <= self.max",
    "!has(self.paused) || !self.paused || self.replicas == 0",
    "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
    "size(self.name) < 64",
    "self.ports.all(p, p.port > 0 && p.port < 65536)",
    "self.ports.exists(p, p.name == 'http')",
    "self.ports.all(p, self.ports.exists_one(q, q.name == p.name))",
    "size(self.labels) <= 16",
    "self.labels.all(k, k.startsWith('app'))",
    "'app' in self.labels",
    "self.mode in ['a', 'b', 'c']",
    "self.mode != 'c' || has(self.extra)",
    "quantity(self.memory).isGreaterThan(quantity('1Mi'))",
    "isIP(self.address)",
    "self.hosts.all(h, h.endsWith('.example.com'))",
    "self.hosts.map(h, size(h)).sum() < 1000",
    "duration(self.timeout) < duration('1h')",
    "self.ports.filter(p, p.port < 1024).size() < 10",
    "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) + (has(self.extra) ? 1 : 0) <= 1",
];

fn main() {
    let text = |most: u64| json!({"type": "string", "maxLength": most});
    let port = json!({"type": "object", "properties": {"name": text(20), "port": {"type": "integer"}, "note": text(200)}});
    let rules: Vec<Value> = RULES.iter().map(|rule| json!({ "rule": rule })).collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "x-kubernetes-validations": rules,
        "properties": {
            "replicas": {"type": "integer"}, "min": {"type": "integer"}, "max": {"type": "integer"},
            "paused": {"type": "boolean"}, "name": text(63), "mode": text(10), "extra": text(10), "a": text(10),
            "b": text(10), "memory": text(20), "address": text(40), "timeout": text(20),
            "labels": {"type": "object", "maxProperties": 20, "additionalProperties": text(63)},
            "hosts": {"type": "array", "maxItems": 20, "items": text(60)},
            "ports": {"type": "array", "maxItems": 20, "items": port}}}}});
    let compiled = compile(&schema, &FieldPath::root());
    assert_eq!(compiled.errors, [], "the rules are within the limits");
    let Some(rules) = compiled.rules else { return };
    let ports: Vec<Value> = (0..8)
        .map(|index| {
            let name = if index == 0 {
                "http".to_owned()
            } else {
                format!("port-{index}")
            };
            json!({"name": name, "port": 8080 + index, "note": "x".repeat(120)})
        })
        .collect();
    let hosts: Vec<String> = (0..8)
        .map(|index| format!("host-{index}.example.com"))
        .collect();
    let object = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "thing"}, "spec": {
        "replicas": 3, "min": 1, "max": 5, "paused": false, "name": "a-name-of-some-length", "mode": "b",
        "memory": "64Mi", "address": "10.0.0.1", "timeout": "30s", "hosts": hosts, "ports": ports,
        "labels": {"app": "x", "app.example.com/part": "server", "app.example.com/tier": "backend"}}});
    let size = object.to_string().len();
    assert_eq!(rules.validate(&object, None), []);
    let mut best = f64::MAX;
    for _ in 0..20 {
        let before = Instant::now();
        for _ in 0..1_000 {
            assert!(rules.validate(&object, None).is_empty());
        }
        best = best.min(before.elapsed().as_secs_f64() * 1_000.0);
    }
    println!(
        "{} rules, object of {size} bytes: {best:.1} us",
        RULES.len()
    );
}
