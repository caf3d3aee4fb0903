//! The smallest documents that a schema of a CustomResourceDefinition permits, from its JSON.

use regex::Regex;
use serde_json::{Map, Value, json};

/// Texts for patterns, formats and least lengths; the first that fits is taken.
const TEXTS: [&str; 22] = [
    "",
    "a",
    "1",
    "1s",
    "a/b",
    "a.b",
    "A",
    "1.1.1.1",
    "10.0.0.0/8",
    "10.0.0.0/24",
    "2006-01-02T15:04:05Z",
    "https://a.b/c",
    "http://a.b",
    "ssh://a.b/c",
    "a=b",
    "a:b",
    "v1",
    "10Gi",
    "00:00:5e:00:53:01",
    "cn=a",
    "/a",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
];

/// A document with the fields that the schema requires, and no other.
pub(crate) fn document(schema: &Value) -> Value {
    let types = schema["type"].as_str();
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(1);
    }
    match types {
        Some("object") => object(schema),
        Some("array") => {
            let len = schema["minItems"].as_u64().unwrap_or(0);
            (0..len).map(|_| document(&schema["items"])).collect()
        }
        Some("boolean") => json!(false),
        Some("integer") => json!(schema["minimum"].as_f64().unwrap_or(0.0).ceil() as i64),
        Some("number") => json!(schema["minimum"].as_f64().unwrap_or(0.0)),
        Some("string") => text(schema),
        _ => json!({}),
    }
}

fn object(schema: &Value) -> Value {
    let mut fields = Map::new();
    if schema["x-kubernetes-embedded-resource"] == true {
        fields.extend([
            ("apiVersion".to_owned(), json!("v1")),
            ("kind".to_owned(), json!("A")),
        ]);
    }
    add_required(schema, schema, &mut fields);
    let least = schema["minProperties"].as_u64().unwrap_or(0) as usize;
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            if fields.len() < least && !fields.contains_key(name) {
                fields.insert(name.clone(), document(property));
            }
        }
    } else if fields.len() < least {
        fields.insert("a".to_owned(), document(&schema["additionalProperties"]));
    }
    Value::Object(fields)
}

/// Adds what `part` requires, which is the schema itself or a part of its `allOf`, `anyOf` or `oneOf`.
fn add_required(schema: &Value, part: &Value, fields: &mut Map<String, Value>) {
    for name in part["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap();
        if !fields.contains_key(name) {
            fields.insert(name.to_owned(), document(&schema["properties"][name]));
        }
    }
    for part in part["allOf"].as_array().into_iter().flatten() {
        add_required(schema, part, fields);
    }
    for keyword in ["anyOf", "oneOf"] {
        // A part without required fields is one for a document without the fields of the others.
        let parts = part[keyword].as_array().map_or(&[][..], Vec::as_slice);
        let fits = |part: &&Value| part["required"].as_array().is_none();
        if !parts.iter().any(|part| fits(&part)) {
            parts
                .iter()
                .take(1)
                .for_each(|part| add_required(schema, part, fields));
        }
    }
}

fn text(schema: &Value) -> Value {
    let pattern = schema["pattern"]
        .as_str()
        .and_then(|pattern| Regex::new(pattern).ok());
    let least = schema["minLength"].as_u64().unwrap_or(0) as usize;
    let of_format = match schema["format"].as_str() {
        Some("date-time") => Some("2006-01-02T15:04:05Z"),
        Some("duration") => Some("1s"),
        Some("byte") => Some("YQ=="),
        Some("uri") => Some("https://a.b/c"),
        Some("ipv4") => Some("1.1.1.1"),
        Some("uuid") => Some("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        _ => None,
    };
    let fits = |text: &&str| {
        text.len() >= least
            && pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(text))
    };
    let found = of_format.into_iter().chain(TEXTS).find(fits);
    // Where no text fits, both servers refuse the object alike.
    json!(found.unwrap_or("a"))
}
