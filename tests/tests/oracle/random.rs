//! Random definitions, and requests to their kinds: documents near the schema, patches, applies, and reads in several forms.

use serde_json::{Map, Value, json};

use crate::case::{Case, Step, definition};

/// A sequence of numbers that follows from its seed alone (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    /// True once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

const NAMES: &[&str] = &["a", "b", "name", "size"];
const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "ab",
    "x-1",
    "2024-01-02",
    "10.0.0.1",
    "1",
    "é",
];

/// As many cases as asked for.
pub(crate) fn cases(seed: u64, count: usize) -> Vec<Case> {
    let cases = (0..count).map(|index| {
        let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(index as u64));
        case(&mut random, seed, index)
    });
    cases.collect()
}

fn case(random: &mut Random, seed: u64, index: usize) -> Case {
    let group = format!("r{seed}x{index}.oracle.example.com");
    let schema = object_schema(random, 3, true);
    let root = json!({"type": "object", "properties": {"spec": schema}});
    let things = format!("/apis/{group}/v1/namespaces/default/things");
    let mut steps = Vec::new();
    for number in 0..7 {
        let body = thing(random, &group, &format!("o{number}"), &schema);
        let path = validated(random, &things);
        let media_type = if random.once_in(5) {
            "application/yaml"
        } else {
            "application/json"
        };
        steps.push(step("POST", &path, media_type, &body));
    }
    for _ in 0..4 {
        let mut patch = json!({"spec": object_value(random, &schema, 2)});
        if random.once_in(6) {
            patch["metadata"] = metadata(random);
        }
        let path = object(random, &things);
        let path = validated(random, &path);
        steps.push(step("PATCH", &path, "application/merge-patch+json", &patch));
    }
    for _ in 0..4 {
        let patch = json_patch(random, &schema);
        let path = object(random, &things);
        let path = validated(random, &path);
        steps.push(step("PATCH", &path, "application/json-patch+json", &patch));
    }
    for _ in 0..6 {
        let path = object(random, &things);
        let name = path.rsplit('/').next().unwrap().to_owned();
        let body = thing(random, &group, &name, &schema);
        let manager = random.pick(&["one", "two"]);
        let force = random.once_in(3);
        let path = format!("{path}?fieldManager={manager}&force={force}");
        let mut apply = step("PATCH", &path, "application/apply-patch+yaml", &body);
        apply.owners = true;
        steps.push(apply);
    }
    steps.push(step("GET", &things, "application/json", &Value::Null));
    let mut owned = step(
        "GET",
        &object(random, &things),
        "application/json",
        &Value::Null,
    );
    owned.owners = true;
    steps.push(owned);
    let name = format!("seed {seed}, definition {index}");
    Case::new(name, Some(definition(&group, &root)), steps)
}

fn step(method: &str, path: &str, content_type: &str, body: &Value) -> Step {
    let mut step = Step::new(method, path, content_type);
    if !body.is_null() {
        step.body = body.to_string();
    }
    step
}

/// A path with a directive of field validation.
fn validated(random: &mut Random, path: &str) -> String {
    let validation = random.pick(&["Strict", "Warn", "Warn", "Ignore"]);
    format!("{path}?fieldValidation={validation}")
}

fn object(random: &mut Random, things: &str) -> String {
    format!("{things}/o{}", random.below(8))
}

fn thing(random: &mut Random, group: &str, name: &str, schema: &Value) -> Value {
    json!({
        "apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": name},
        "spec": value(random, schema),
    })
}

/// A structural schema. Defaults only where they are asked for: not below items that a list is keyed by.
fn schema(random: &mut Random, depth: usize, defaults: bool) -> Value {
    let kinds = if depth == 0 { 5 } else { 13 };
    let mut schema = match random.below(kinds) {
        0 | 1 => string_schema(random),
        2 => number_schema(random, "integer"),
        3 => number_schema(random, "number"),
        4 => json!({"type": "boolean"}),
        5 => json!({"x-kubernetes-int-or-string": true}),
        6 => list_schema(random, depth - 1),
        7 => json!({"type": "object", "additionalProperties": schema(random, depth - 1, false)}),
        8 => preserving_schema(random, depth - 1),
        9 => embedded_schema(random, depth - 1),
        10 => defaulted_schema(random, depth - 1, defaults),
        _ => object_schema(random, depth - 1, defaults),
    };
    if random.once_in(6) {
        schema["nullable"] = json!(true);
    }
    if defaults && random.once_in(4) {
        let usual = value_of_type(random, &schema);
        if !usual.is_null() && is_simple(&schema) {
            schema["default"] = usual;
        }
    }
    schema
}

/// Whether each value of the type is valid.
fn is_simple(schema: &Value) -> bool {
    let fields = schema.as_object().unwrap();
    fields.keys().all(|key| key == "type" || key == "nullable") && schema["type"] != "object"
}

fn object_schema(random: &mut Random, depth: usize, defaults: bool) -> Value {
    let mut properties = Map::new();
    for name in NAMES {
        if !random.once_in(4) {
            properties.insert((*name).to_owned(), schema(random, depth, defaults));
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if random.once_in(3) {
        schema["required"] = json!([random.pick(NAMES)]);
    }
    if random.once_in(6) {
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    if random.once_in(6) {
        schema["maxProperties"] = json!(2);
    }
    if random.once_in(8) {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    schema
}

/// One that keeps unknown fields, at a field, an item or anywhere.
fn preserving_schema(random: &mut Random, depth: usize) -> Value {
    match random.below(4) {
        0 => json!({"x-kubernetes-preserve-unknown-fields": true}),
        1 => {
            json!({"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"type": "object", "properties": {"a": schema(random, depth.min(1), false)}}})
        }
        2 => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": schema(random, depth.min(1), false)}})
        }
        _ => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    }
}

fn embedded_schema(random: &mut Random, depth: usize) -> Value {
    let mut schema = json!({"type": "object", "x-kubernetes-embedded-resource": true});
    if random.once_in(2) {
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    } else {
        schema["properties"] = json!({"a": self::schema(random, depth.min(1), false)});
    }
    schema
}

/// An object whose fields have defaults, and which may have itself, of a list item or of a field.
fn defaulted_schema(random: &mut Random, depth: usize, defaults: bool) -> Value {
    let mut fields = Map::new();
    for name in &NAMES[..2] {
        let mut field = match random.below(3) {
            0 if depth > 0 => defaulted_schema(random, depth - 1, defaults),
            1 => json!({"type": "integer", "default": random.below(9)}),
            _ => json!({"type": "string", "default": random.pick(TEXTS)}),
        };
        if random.once_in(4) {
            field["nullable"] = json!(true);
        }
        fields.insert((*name).to_owned(), field);
    }
    let mut schema = json!({"type": "object", "properties": fields});
    if !defaults {
        return schema;
    }
    if random.once_in(2) {
        schema["default"] = json!({});
    } else if random.once_in(3) {
        schema["default"] = json!({"b": null});
    }
    schema
}

fn string_schema(random: &mut Random) -> Value {
    let mut schema = json!({"type": "string"});
    match random.below(8) {
        0 => schema["enum"] = json!(["a", "b", "ab"]),
        1 => schema["maxLength"] = json!(1),
        2 => schema["minLength"] = json!(1),
        3 => schema["pattern"] = json!("^[a-z]+$"),
        4 => {
            let formats = ["date", "ipv4", "int-or-else", "byte", "uuid", "duration"];
            schema["format"] = json!(random.pick(&formats));
        }
        _ => {}
    }
    schema
}

fn number_schema(random: &mut Random, kind: &str) -> Value {
    let mut schema = json!({"type": kind});
    match random.below(8) {
        0 => schema["minimum"] = json!(0),
        1 => schema["maximum"] = json!(3),
        2 => (schema["minimum"], schema["exclusiveMinimum"]) = (json!(1), json!(true)),
        3 => schema["multipleOf"] = json!(2),
        4 if kind == "integer" => schema["format"] = json!("int32"),
        5 => schema["enum"] = json!([1, 2, 3]),
        _ => {}
    }
    schema
}

fn list_schema(random: &mut Random, depth: usize) -> Value {
    match random.below(6) {
        0 => json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        4 => json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}}),
        5 => {
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "b"], "items": {
                "type": "object", "required": ["name"],
                "properties": {"name": {"type": "string"}, "b": {"type": "integer", "default": 1}, "a": schema(random, depth, false)},
            }})
        }
        1 => {
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                "type": "object", "required": ["name"],
                "properties": {"name": {"type": "string"}, "a": schema(random, depth, false)},
            }})
        }
        2 => json!({"type": "array", "maxItems": 2, "items": schema(random, depth, false)}),
        _ => json!({"type": "array", "items": schema(random, depth, false)}),
    }
}

/// A value for a schema, now and then one of another type.
fn value(random: &mut Random, schema: &Value) -> Value {
    match random.below(24) {
        0 => Value::Null,
        1 => random
            .pick(&[
                json!(1),
                json!("a"),
                json!([]),
                json!({}),
                json!(true),
                json!(1.5),
                json!({"a": 1}),
            ])
            .clone(),
        _ => value_of_type(random, schema),
    }
}

fn value_of_type(random: &mut Random, schema: &Value) -> Value {
    if schema["x-kubernetes-int-or-string"] == true {
        return random
            .pick(&[json!(1), json!("10%"), json!("a"), json!(-1)])
            .clone();
    }
    match schema["type"].as_str() {
        Some("string") => json!(random.pick(TEXTS)),
        Some("integer") if random.once_in(12) => json!(2.0),
        Some("integer") => json!(random.below(6)),
        Some("number") => random
            .pick(&[
                json!(1),
                json!(2.5),
                json!(0),
                json!(-1.25),
                json!(3.0),
                json!(1e21),
                json!(u64::MAX),
            ])
            .clone(),
        Some("boolean") => json!(random.once_in(2)),
        Some("array") => (0..random.below(4))
            .map(|_| value(random, &schema["items"]))
            .collect(),
        _ => object_value(random, schema, 3),
    }
}

/// An object with most of its properties: all but one in so many.
fn object_value(random: &mut Random, schema: &Value, all_but: usize) -> Value {
    let mut fields = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if !random.once_in(all_but) {
            fields.insert(name.clone(), value(random, property));
        }
    }
    if schema["x-kubernetes-embedded-resource"] == true {
        for (name, value) in [
            ("apiVersion", json!("v1")),
            ("kind", json!("A")),
            ("metadata", metadata(random)),
        ] {
            if !random.once_in(8) {
                fields.insert(name.to_owned(), value);
            }
        }
    }
    if let Some(values) = schema.get("additionalProperties") {
        for _ in 0..random.below(3) {
            fields.insert((*random.pick(NAMES)).to_owned(), value(random, values));
        }
    }
    if random.once_in(8) {
        fields.insert("unknown".to_owned(), json!({"b": [1, {"a": null}]}));
    }
    fields.into()
}

fn metadata(random: &mut Random) -> Value {
    random
        .pick(&[
            json!({}),
            json!({"labels": {"a": "b"}}),
            json!({"labels": {"a b": "c"}, "annotations": {"d": "e"}}),
            json!({"annotations": {}, "finalizers": []}),
            json!({"unknown": 1, "labels": {"a": "b"}}),
            json!({"labels": {"a": 1}}),
            json!({"generation": 2.0}),
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "unknown": 1}]}),
            Value::Null,
        ])
        .clone()
}

fn json_patch(random: &mut Random, schema: &Value) -> Value {
    let mut operations = Vec::new();
    for _ in 0..=random.below(2) {
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let fallback = "a".to_owned();
        let name = if names.is_empty() {
            &fallback
        } else {
            *random.pick(&names)
        };
        let deeper = random.pick(&["", "", "", "/0", "/-", "/a", "/name", "/0/a", "/unknown"]);
        let path = format!("/spec/{name}{deeper}");
        operations.push(match random.below(4) {
            0 => json!({"op": "remove", "path": path}),
            1 => json!({"op": "replace", "path": path, "value": value(random, &schema["properties"][name])}),
            2 => json!({"op": "test", "path": path, "value": value(random, &schema["properties"][name])}),
            _ => json!({"op": "add", "path": path, "value": value(random, &schema["properties"][name])}),
        });
    }
    operations.into()
}
