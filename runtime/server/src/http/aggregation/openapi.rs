//! OpenAPI of several servers: the index of v3, and one document of v2.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::table::Table;

/// Adds the documents of other servers to the index of v3.
pub(crate) fn add_v3(index: &mut Value, table: &Table) {
    let Some(paths) = index.get_mut("paths").and_then(Value::as_object_mut) else {
        return;
    };
    for service in table.services() {
        let key = prefix(&service.group, &service.version);
        let key = key.trim_start_matches('/').to_owned();
        match &service.documents.openapi_v3 {
            Some(url) => {
                paths.insert(key, json!({ "serverRelativeURL": url }));
            }
            // This server's own, of a kind that is not served now.
            None => drop(paths.remove(&key)),
        }
    }
}

/// What begins every reference to a definition.
const DEFINITIONS: &str = "#/definitions/";

/// Longest path, and longest name of a definition.
const MAX_NAME: usize = 1024;

/// Whether a text can be a path or the name of a definition in a document of this server.
fn is_name(text: &str) -> bool {
    let is_printed = text.bytes().all(|byte| byte.is_ascii_graphic());
    is_printed && text.len() <= MAX_NAME && !text.split('/').any(|segment| segment == "..")
}

/// The part of a document of v2 that is about the paths of one version: these, and the definitions that they use. What cannot
/// be a name is left out.
pub(crate) fn part_of_v2(document: &Value, prefix: &str) -> Value {
    let below = format!("{prefix}/");
    let paths = document["paths"].as_object().into_iter().flatten();
    let paths: Map<String, Value> = paths
        .filter(|(path, _)| is_name(path) && (*path == prefix || path.starts_with(&below)))
        .map(|(path, item)| (path.clone(), item.clone()))
        .collect();
    let mut used = BTreeSet::new();
    let mut pending = Vec::new();
    paths
        .values()
        .for_each(|item| references(item, &mut pending));
    let known = &document["definitions"];
    while let Some(name) = pending.pop() {
        if let Some(definition) = known.get(&name).filter(|_| is_name(&name))
            && used.insert(name)
        {
            references(definition, &mut pending);
        }
    }
    let definitions: Map<String, Value> = used
        .into_iter()
        .map(|name| (name.clone(), known[name.as_str()].clone()))
        .collect();
    json!({ "paths": paths, "definitions": definitions })
}

/// Collects the names of the definitions that a value refers to.
fn references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value
                    .as_str()
                    .and_then(|text| text.strip_prefix(DEFINITIONS))
                {
                    Some(name) if key == "$ref" => names.push(name.to_owned()),
                    _ => references(value, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

/// Adds the parts of other servers to a document of v2. A definition whose name another one has gets a number at its end.
pub(crate) fn merge_v2(document: &mut Value, table: &Table) {
    for service in table.services() {
        let own = prefix(&service.group, &service.version);
        let below = format!("{own}/");
        if let Some(paths) = document["paths"].as_object_mut() {
            paths.retain(|path, _| *path != own && !path.starts_with(&below));
        }
        if let Some(part) = &service.documents.openapi_v2 {
            add_part(document, part);
        }
    }
}

/// The path of a version of a group.
pub(crate) fn prefix(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    }
}

fn add_part(document: &mut Value, part: &Value) {
    let added = part["definitions"].as_object().cloned().unwrap_or_default();
    let mut renamed = BTreeMap::new();
    if let Some(known) = document["definitions"].as_object() {
        for (name, definition) in &added {
            if known.get(name).is_some_and(|known| known != definition) {
                let is_free =
                    |name: &String| !known.contains_key(name) && !added.contains_key(name);
                let mut names = (2..).map(|number| format!("{name}_v{number}"));
                if let Some(free) = names.find(is_free) {
                    renamed.insert(name.clone(), free);
                }
            }
        }
    }
    let with_names = |value: &Value| {
        let mut value = value.clone();
        rename(&mut value, &renamed);
        value
    };
    if let Some(definitions) = document["definitions"].as_object_mut() {
        for (name, definition) in &added {
            let name = renamed.get(name).unwrap_or(name);
            definitions.insert(name.clone(), with_names(definition));
        }
    }
    let paths = part["paths"].as_object().into_iter().flatten();
    if let Some(known) = document["paths"].as_object_mut() {
        known.extend(paths.map(|(path, item)| (path.clone(), with_names(item))));
    }
}

fn rename(value: &mut Value, renamed: &BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let name = value
                    .as_str()
                    .and_then(|text| text.strip_prefix(DEFINITIONS));
                match name.and_then(|name| renamed.get(name)) {
                    Some(new) if key == "$ref" => *value = format!("{DEFINITIONS}{new}").into(),
                    _ => rename(value, renamed),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, renamed)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_its_paths_and_what_they_use() {
        let document = json!({
            "paths": {
                "/apis/g/v1/": {"get": {"schema": {"$ref": "#/definitions/A"}}},
                "/apis/g/v1/../v2": {},
                "/apis/g/v1/a\nb": {},
                "/apis/g/v10/": {"get": {"schema": {"$ref": "#/definitions/C"}}},
                "/version": {},
            },
            "definitions": {
                "A": {"properties": {"b": {"$ref": "#/definitions/B"}, "$ref": {"type": "string"}}},
                "B": {"items": [{"$ref": "#/definitions/A"}]},
                "C": {},
            },
        });
        let part = part_of_v2(&document, "/apis/g/v1");
        let keys =
            |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        assert_eq!(keys(&part["paths"]), ["/apis/g/v1/"]);
        assert_eq!(keys(&part["definitions"]), ["A", "B"]);
    }

    #[test]
    fn definitions_of_the_same_name_are_kept_apart() {
        let mut document =
            json!({"paths": {}, "definitions": {"A": {"type": "object"}, "Same": {}}});
        let part = json!({
            "paths": {"/apis/g/v1/": {"$ref": "#/definitions/A"}},
            "definitions": {"A": {"items": {"$ref": "#/definitions/A"}}, "Same": {}},
        });
        add_part(&mut document, &part);
        let expected = json!({
            "paths": {"/apis/g/v1/": {"$ref": "#/definitions/A_v2"}},
            "definitions": {"A": {"type": "object"}, "Same": {}, "A_v2": {"items": {"$ref": "#/definitions/A_v2"}}},
        });
        assert_eq!(document, expected);
    }
}
