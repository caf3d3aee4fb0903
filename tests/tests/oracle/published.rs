//! The OpenAPI documents of one group, from the documents that a server publishes: OpenAPI v3, and v2 as JSON and as Protobuf.
//!
//! Each server words its own descriptions; those that the definition has must be the same. What only one of the servers can do is
//! taken out (`UNKNOWN`). The schemas of v2 in Protobuf are decoded to JSON; of the rest of that format the paths are compared.

use serde_json::{Map, Value, json};

/// Parameters, fields and types of features that are off in the oracle, and that this server does not have.
const UNKNOWN: [&str; 8] = [
    "shardSelector",
    "shardInfo",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ShardInfo",
    // The types of fields of kinds that are compiled are written where they are used here.
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.autoscaling.v1.ScaleSpec",
    "io.k8s.api.autoscaling.v1.ScaleStatus",
    // Documents of v2 say which tokens clients need, and so do those of the oracle if it has identities.
    "securityDefinitions",
];

/// What is compared of the published document of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All.
    Whole,
    /// The schemas of its kinds and their lists.
    Kinds,
}

/// A part of a published document; `written` is the definition.
pub(crate) fn part(part: Part, body: &[u8], group: &str, written: &str) -> Value {
    let mut document = match serde_json::from_slice::<Value>(body) {
        Ok(document) => document,
        Err(_) => protobuf(body),
    };
    if document.get("swagger").is_some() {
        document = of_group(&document, group);
    }
    document.as_object_mut().unwrap().remove("info");
    clean(&mut document, written);
    if part == Part::Kinds {
        let schemas = document.pointer("/components/schemas");
        let schemas = schemas.unwrap_or(&document["definitions"]).as_object();
        let words: Vec<&str> = group.rsplit('.').collect();
        let begin = format!("{}.", words.join("."));
        let kinds = schemas.into_iter().flatten();
        let kinds = kinds.filter(|(name, _)| name.starts_with(&begin));
        return kinds
            .map(|(name, schema)| (name.clone(), schema.clone()))
            .collect::<Map<_, _>>()
            .into();
    }
    document
}

/// The paths of a group in a document of v2, and the schemas to which they lead.
fn of_group(document: &Value, group: &str) -> Value {
    let begin = format!("/apis/{group}/");
    let mut paths = Map::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        if path.starts_with(&begin) {
            let mut item = item.clone();
            inline(&mut item, &document["parameters"]);
            paths.insert(path.clone(), item);
        }
    }
    let mut definitions = Map::new();
    let mut wanted = Vec::new();
    references(&Value::Object(paths.clone()), &mut wanted);
    while let Some(name) = wanted.pop() {
        if !definitions.contains_key(&name) {
            let schema = &document["definitions"][&name];
            references(schema, &mut wanted);
            definitions.insert(name, schema.clone());
        }
    }
    json!({"paths": paths, "definitions": definitions})
}

/// Puts the parameters that operations share in the place of references to them.
fn inline(value: &mut Value, parameters: &Value) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str);
            if let Some(name) = name.and_then(|name| name.strip_prefix("#/parameters/")) {
                *value = parameters[name].clone();
                return;
            }
            fields
                .values_mut()
                .for_each(|below| inline(below, parameters));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| inline(item, parameters)),
        _ => {}
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let target = fields.get("$ref").and_then(Value::as_str);
            let name = target.and_then(|target| target.strip_prefix("#/definitions/"));
            found.extend(name.map(str::to_owned));
            fields.values().for_each(|below| references(below, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn clean(value: &mut Value, written: &str) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !UNKNOWN.contains(&name.as_str()));
            if let Some(description @ Value::String(_)) = fields.get_mut("description")
                && !written.contains(&description.to_string())
            {
                *description = json!("DESCRIPTION");
            }
            if let Some(kinds) = fields.get_mut("x-kubernetes-group-version-kind")
                && kinds[0]["kind"] == "DeleteOptions"
            {
                // The oracle's scheme has more groups than it serves.
                *kinds = json!("ALL GROUPS");
            }
            // An order without a meaning.
            if let Some(Value::Array(names)) = fields.get_mut("consumes") {
                names.sort_by_key(ToString::to_string);
            }
            fields.values_mut().for_each(|below| clean(below, written));
        }
        Value::Array(items) => {
            items.retain(|item| {
                let name = item.get("name").and_then(Value::as_str);
                name.is_none_or(|name| !UNKNOWN.contains(&name))
            });
            // Parameters are told apart by their names.
            if items.iter().all(|item| item.get("in").is_some()) {
                items.sort_by_key(|item| item["name"].to_string());
            }
            items.iter_mut().for_each(|item| clean(item, written));
        }
        _ => {}
    }
}

/// A document of v2 in Protobuf, `openapi.v2.Document` of gnostic: its schemas, and which paths it has.
fn protobuf(body: &[u8]) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for (number, field) in fields(body) {
        match number {
            8 => paths.extend(named(&field, 2, &|_| json!({}))),
            9 => definitions.extend(named(&field, 1, &schema)),
            _ => {}
        }
    }
    json!({"swagger": "2.0", "paths": with_kinds(paths, &definitions), "definitions": definitions})
}

/// Paths that lead to the schemas of their group.
fn with_kinds(paths: Map<String, Value>, definitions: &Map<String, Value>) -> Value {
    let of_path = |(path, _): (String, Value)| {
        let group = path.split('/').nth(2).unwrap_or_default().to_owned();
        let leads = |schema: &&Value| {
            schema["x-kubernetes-group-version-kind"][0]["group"] == group.as_str()
        };
        let names = definitions
            .iter()
            .filter(|(_, schema)| leads(schema))
            .map(|(name, _)| json!({"$ref": format!("#/definitions/{name}")}));
        (path, names.collect::<Value>())
    };
    Value::Object(paths.into_iter().map(of_path).collect())
}

/// A schema of gnostic's v2.
fn schema(bytes: &[u8]) -> Value {
    let mut out = Map::new();
    for (number, field) in fields(bytes) {
        let (name, value) = match number {
            1 => ("$ref", text(&field)),
            2 => ("format", text(&field)),
            3 => ("title", text(&field)),
            4 => ("description", text(&field)),
            5 => ("default", any(&field)),
            6 => ("multipleOf", double(&field)),
            7 => ("maximum", double(&field)),
            8 => ("exclusiveMaximum", json!(integer(&field) != 0)),
            9 => ("minimum", double(&field)),
            10 => ("exclusiveMinimum", json!(integer(&field) != 0)),
            11 => ("maxLength", json!(integer(&field))),
            12 => ("minLength", json!(integer(&field))),
            13 => ("pattern", text(&field)),
            14 => ("maxItems", json!(integer(&field))),
            15 => ("minItems", json!(integer(&field))),
            16 => ("uniqueItems", json!(integer(&field) != 0)),
            17 => ("maxProperties", json!(integer(&field))),
            18 => ("minProperties", json!(integer(&field))),
            19 => ("required", push(&mut out, "required", text(&field))),
            20 => ("enum", push(&mut out, "enum", any(&field))),
            21 => ("additionalProperties", additional(&field)),
            22 => ("type", text(&only(&field))),
            23 => ("items", schema(&only(&field))),
            25 => (
                "properties",
                Value::Object(named(&field, 1, &schema).collect()),
            ),
            29 => ("externalDocs", external(&field)),
            30 => ("example", any(&field)),
            31 => {
                out.extend(named(&wrapped(1, &field), 1, &any));
                continue;
            }
            other => panic!("a schema has no field {other}"),
        };
        out.insert(name.to_owned(), value);
    }
    Value::Object(out)
}

fn external(bytes: &[u8]) -> Value {
    let names = |number| if number == 1 { "description" } else { "url" };
    let all = fields(bytes).into_iter();
    all.map(|(number, field)| (names(number).to_owned(), text(&field)))
        .collect::<Map<_, _>>()
        .into()
}

fn additional(bytes: &[u8]) -> Value {
    match fields(bytes).pop() {
        Some((1, field)) => schema(&field),
        Some((_, field)) => json!(integer(&field) != 0),
        None => json!(false),
    }
}

/// The value of a list with one more item.
fn push(out: &mut Map<String, Value>, name: &str, item: Value) -> Value {
    let mut items = out.remove(name).unwrap_or_else(|| json!([]));
    items.as_array_mut().unwrap().push(item);
    items
}

/// The members of a map: messages with a name and a value, in the fields of one number.
fn named(
    bytes: &[u8],
    number: u64,
    value: &dyn Fn(&[u8]) -> Value,
) -> impl Iterator<Item = (String, Value)> {
    let entries = fields(bytes).into_iter();
    let entries = entries.filter(move |(found, _)| *found == number);
    entries
        .map(|(_, entry)| {
            let mut name = String::new();
            let mut found = value(&[]);
            for (number, field) in fields(&entry) {
                match number {
                    1 => name = String::from_utf8(field).unwrap(),
                    _ => found = value(&field),
                }
            }
            (name, found)
        })
        .collect::<Vec<_>>()
        .into_iter()
}

/// `Any`: the text of a value as YAML.
fn any(bytes: &[u8]) -> Value {
    let text = fields(bytes)
        .into_iter()
        .find(|(number, _)| *number == 2)
        .map(|(_, text)| String::from_utf8(text).unwrap());
    text.map_or(Value::Null, |text| serde_saphyr::from_str(&text).unwrap())
}

fn only(bytes: &[u8]) -> Vec<u8> {
    fields(bytes)
        .pop()
        .map(|(_, field)| field)
        .unwrap_or_default()
}

fn text(bytes: &[u8]) -> Value {
    json!(std::str::from_utf8(bytes).unwrap())
}

fn double(bytes: &[u8]) -> Value {
    json!(f64::from_le_bytes(bytes.try_into().unwrap()))
}

fn integer(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// A message with one field.
fn wrapped(number: u8, field: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut rest = field.len();
    while rest > 0x7f {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out.extend(field);
    out
}

/// The fields of a message: numbers with the bytes of a text or message, or the eight of a number.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => varint(&mut bytes).to_le_bytes().to_vec(),
            1 => take(&mut bytes, 8).to_vec(),
            2 => {
                let len = varint(&mut bytes) as usize;
                take(&mut bytes, len).to_vec()
            }
            other => panic!("the encoding {other} is not used"),
        };
        found.push((tag >> 3, field));
    }
    found
}

fn take<'b>(bytes: &mut &'b [u8], len: usize) -> &'b [u8] {
    let (taken, rest) = bytes.split_at(len);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for at in 0.. {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}
