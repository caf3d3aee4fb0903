//! OpenAPI of several servers: the index of v3 with a document for each version, and one document of v2. Of the documents of other
//! servers only what is about the asked version is kept, with names that can be used, and with references that lead somewhere.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::table::Table;
use crate::http::references::{DEFINITIONS, SCHEMAS, references};
use crate::http::static_doc::PackedDoc;
use crate::http::texts::{self, Texts};

/// Adds the documents of other servers to the index of v3.
pub(crate) fn add_v3(index: &mut Value, table: &Table) {
    let Some(paths) = index.get_mut("paths").and_then(Value::as_object_mut) else {
        return;
    };
    for (key, document) in v3_documents(table) {
        match document {
            Some(document) => {
                let url = format!("/openapi/v3/{key}?hash={}", document.hash());
                paths.insert(key, json!({ "serverRelativeURL": url }));
            }
            // This server's own, of a kind that is not served now.
            None => drop(paths.remove(&key)),
        }
    }
}

/// The documents of v3 of all other servers, by their keys in the index; `None` of a version that has none.
pub(crate) fn v3_documents(table: &Table) -> impl Iterator<Item = (String, Option<&PackedDoc>)> {
    table.services().iter().map(|service| {
        let key = prefix(&service.group, &service.version);
        let document = service.documents.openapi_v3.as_ref();
        let document = document.map(|document| &*document.document);
        (key.trim_start_matches('/').to_owned(), document)
    })
}

/// Longest path, and longest name of a schema.
const MAX_NAME: usize = 1024;

/// Whether a text can be a path or the name of a schema in a document of this server.
fn is_name(text: &str) -> bool {
    let is_printed = text.bytes().all(|byte| byte.is_ascii_graphic());
    is_printed && text.len() <= MAX_NAME && !text.split('/').any(|segment| segment == "..")
}

/// A part of a document of v2.
#[derive(Default, Deserialize, Serialize)]
struct Part {
    definitions: Texts,
    paths: Texts,
}

/// The part of a document of v2 that is about the paths of one version: these, and the definitions that they use. What cannot
/// be a name is left out.
pub(crate) fn part_of_v2(document: &Value, prefix: &str) -> PackedDoc {
    let (paths, definitions) = part(document, prefix, (&document["definitions"], DEFINITIONS));
    PackedDoc::json(&json!({ "paths": paths, "definitions": definitions }))
}

/// The same of a document of v3, as a whole document.
pub(crate) fn part_of_v3(document: &Value, prefix: &str) -> PackedDoc {
    let schemas = &document["components"]["schemas"];
    let (paths, schemas) = part(document, prefix, (schemas, SCHEMAS));
    PackedDoc::json(&json!({
        "openapi": "3.0.0",
        "info": { "title": prefix.trim_start_matches('/'), "version": "unversioned" },
        "paths": paths,
        "components": { "schemas": schemas },
    }))
}

/// The paths of a version, and what they use of the schemas, references to which begin with a text. Other references lead
/// nowhere in a document of this server, and clients refuse the whole document for one: they are left out.
fn part(
    document: &Value,
    prefix: &str,
    (known, begin): (&Value, &str),
) -> (Map<String, Value>, Map<String, Value>) {
    let below = format!("{prefix}/");
    let paths = document["paths"].as_object().into_iter().flatten();
    let paths: Vec<(&String, &Value)> = paths
        .filter(|(path, _)| is_name(path) && (*path == prefix || path.starts_with(&below)))
        .collect();
    let mut used = BTreeSet::new();
    let mut pending = Vec::new();
    for (_, item) in &paths {
        references(item, begin, &mut pending);
    }
    while let Some(name) = pending.pop() {
        if let Some(schema) = known.get(name).filter(|_| is_name(name))
            && used.insert(name)
        {
            references(schema, begin, &mut pending);
        }
    }
    let is_kept = |reference: &str| {
        let name = reference.strip_prefix(begin);
        name.is_some_and(|name| used.contains(name))
    };
    let paths = paths.into_iter();
    let paths = paths.map(|(path, item)| (path.clone(), with_references(item, &is_kept)));
    let schemas = used
        .iter()
        .map(|name| ((*name).to_owned(), with_references(&known[*name], &is_kept)));
    (paths.collect(), schemas.collect())
}

/// A copy of a value with those of its references that are kept.
fn with_references(value: &Value, is_kept: &impl Fn(&str) -> bool) -> Value {
    let is_lost = |value: &Value| value.as_str().is_some_and(|text| !is_kept(text));
    match value {
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.filter(|(key, value)| *key != "$ref" || !is_lost(value));
            let copy = fields.map(|(key, value)| (key.clone(), with_references(value, is_kept)));
            Value::Object(copy.collect())
        }
        Value::Array(items) => {
            let items = items.iter();
            let items = items.filter(|item| item.get("$ref").is_none_or(|to| !is_lost(to)));
            items.map(|item| with_references(item, is_kept)).collect()
        }
        other => other.clone(),
    }
}

/// Adds the parts of other servers to a document of v2. A definition whose name another one has gets a number at its end.
pub(crate) fn merge_v2((paths, definitions): (&mut Texts, &mut Texts), table: &Table) {
    for service in table.services() {
        let own = prefix(&service.group, &service.version);
        let below = format!("{own}/");
        paths.retain(|path, _| *path != own && !path.starts_with(&below));
        if let Some(part) = &service.documents.openapi_v2 {
            // It was written here.
            let part = serde_json::from_slice(&part.unpacked());
            add_part((paths, definitions), part.unwrap_or_default());
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

fn add_part((paths, definitions): (&mut Texts, &mut Texts), part: Part) {
    let mut renamed = BTreeMap::new();
    for (name, definition) in &part.definitions {
        let known = definitions.get(name);
        if known.is_some_and(|known| known.get() != definition.get()) {
            let is_free = |name: &String| {
                !definitions.contains_key(name) && !part.definitions.contains_key(name)
            };
            let mut names = (2..).map(|number| format!("{name}_v{number}"));
            if let Some(free) = names.find(is_free) {
                renamed.insert(name.clone(), free);
            }
        }
    }
    let with_names = |text: Box<RawValue>| {
        if renamed.is_empty() {
            return text;
        }
        let mut value = texts::value(&text);
        rename(&mut value, &renamed);
        texts::text(&value)
    };
    for (name, definition) in part.definitions {
        let name = renamed.get(&name).cloned().unwrap_or(name);
        definitions.insert(name, with_names(definition));
    }
    let added = part.paths.into_iter();
    paths.extend(added.map(|(path, item)| (path, with_names(item))));
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

    fn unpacked(document: &PackedDoc) -> Value {
        serde_json::from_slice(&document.unpacked()).unwrap()
    }

    /// The names in an object.
    fn keys(value: &Value) -> Vec<&str> {
        let fields = value.as_object().unwrap();
        fields.keys().map(String::as_str).collect()
    }

    /// A document whose schemas are `schemas`, for references that begin with a text.
    fn hostile(begin: &str) -> (Value, Value) {
        let to = |name: &str| json!({"$ref": format!("{begin}{name}")});
        let paths = json!({
            "/apis/g/v1/": {"get": {"schema": to("A"), "parameters": [{"$ref": "#/parameters/limit"}, {"name": "a"}]}},
            "/apis/g/v1/lost": {"get": {"schema": to("none"), "other": {"$ref": "https://elsewhere.test/"}, "odd": to("a\nb")}},
            "/apis/g/v1/../v2": {},
            "/apis/g/v1/a\nb": {},
            "/apis/g/v10/": {"get": {"schema": to("C")}},
            "/version": {},
        });
        let schemas = json!({
            "A": {"properties": {"b": to("B"), "$ref": {"type": "string"}}, "allOf": [to("lost"), {}]},
            "B": {"items": [to("A")]},
            "C": {},
            "a\nb": {},
        });
        (paths, schemas)
    }

    /// What is left of its paths and schemas.
    fn check_part((paths, schemas): (&Value, &Value), begin: &str) {
        assert_eq!(keys(paths), ["/apis/g/v1/", "/apis/g/v1/lost"]);
        assert_eq!(keys(schemas), ["A", "B"]);
        let to = |name: &str| json!({"$ref": format!("{begin}{name}")});
        assert_eq!(
            paths["/apis/g/v1/"]["get"],
            json!({"schema": to("A"), "parameters": [{"name": "a"}]})
        );
        assert_eq!(
            paths["/apis/g/v1/lost"]["get"],
            json!({"schema": {}, "other": {}, "odd": {}})
        );
        let properties = json!({"b": to("B"), "$ref": {"type": "string"}});
        assert_eq!(
            schemas["A"],
            json!({"properties": properties, "allOf": [{}]})
        );
        assert_eq!(schemas["B"], json!({"items": [to("A")]}));
    }

    #[test]
    fn a_part_of_v2_has_its_paths_and_what_they_use() {
        let (paths, schemas) = hostile(DEFINITIONS);
        let document = json!({"swagger": "2.0", "paths": paths, "definitions": schemas});
        let part = unpacked(&part_of_v2(&document, "/apis/g/v1"));
        check_part((&part["paths"], &part["definitions"]), DEFINITIONS);
    }

    #[test]
    fn a_part_of_v3_has_its_paths_and_what_they_use() {
        let (paths, schemas) = hostile(SCHEMAS);
        let document = json!({
            "openapi": "2.9", "info": {"title": "evil\n"}, "servers": [{"url": "https://elsewhere.test"}],
            "paths": paths, "components": {"schemas": schemas, "examples": {}},
        });
        let part = unpacked(&part_of_v3(&document, "/apis/g/v1"));
        check_part((&part["paths"], &part["components"]["schemas"]), SCHEMAS);
        assert_eq!(keys(&part), ["components", "info", "openapi", "paths"]);
        assert_eq!(keys(&part["components"]), ["schemas"]);
        assert_eq!(part["info"]["title"], "apis/g/v1");
    }

    #[test]
    fn what_is_no_document_has_an_empty_part() {
        for document in [
            json!(null),
            json!([]),
            json!({"paths": [], "components": 1}),
            json!({"paths": {"/apis/g/v1/": 3}, "components": {"schemas": "a"}}),
        ] {
            let part = unpacked(&part_of_v3(&document, "/apis/g/v1"));
            assert_eq!(part["components"]["schemas"], json!({}), "{document}");
        }
    }

    #[test]
    fn definitions_of_the_same_name_are_kept_apart() {
        let texts = |value: Value| serde_json::from_value::<Part>(value).unwrap();
        let mut document = texts(json!({
            "paths": {},
            "definitions": {"A": {"type": "object"}, "Same": {}},
        }));
        let part = texts(json!({
            "paths": {"/apis/g/v1/": {"$ref": "#/definitions/A"}},
            "definitions": {"A": {"items": {"$ref": "#/definitions/A"}}, "Same": {}},
        }));
        add_part((&mut document.paths, &mut document.definitions), part);
        let expected = json!({
            "paths": {"/apis/g/v1/": {"$ref": "#/definitions/A_v2"}},
            "definitions": {"A": {"type": "object"}, "Same": {}, "A_v2": {"items": {"$ref": "#/definitions/A_v2"}}},
        });
        assert_eq!(json!(document), expected);
    }
}
