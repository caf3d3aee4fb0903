//! OpenAPI of several servers: the index of v3 with a document for each version, and one document of v2. Of the documents of other
//! servers only what is about the asked version is kept, with names that can be used, and with references that lead somewhere.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::table::Table;
use crate::documents::openapi::RemoteOpenApi;
use crate::documents::references::{DEFINITIONS, SCHEMAS, references};
use crate::request::version_path::path_of_version;
use crate::response::static_doc::PackedDoc;
use crate::shape::texts::{self, Fields, Texts, fields};

impl RemoteOpenApi for Table {
    fn v3_documents(&self) -> Vec<(String, Option<&PackedDoc>)> {
        let of_services = self.services().iter().map(|service| {
            let key = path_of_version(&service.group, &service.version);
            let document = service.documents.openapi_v3.as_ref();
            let document = document.map(|document| &*document.document);
            (key.trim_start_matches('/').to_owned(), document)
        });
        of_services.collect()
    }

    /// A definition whose name another one has gets a number at its end.
    fn merge_v2(&self, paths: &mut Texts, definitions: &mut Texts) {
        for service in self.services() {
            let own = path_of_version(&service.group, &service.version);
            let below = format!("{own}/");
            paths.retain(|path, _| *path != own && !path.starts_with(&below));
            if let Some(part) = &service.documents.openapi_v2 {
                // It was written here.
                let part = serde_json::from_slice(&part.unpacked());
                add_part((paths, definitions), part.unwrap_or_default());
            }
        }
    }
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
/// be a name is left out. The rest of the document stays text, which takes a twentieth of the memory.
///
/// # Errors
/// If it is not JSON.
pub fn part_of_v2(document: &[u8], prefix: &str) -> serde_json::Result<PackedDoc> {
    let document = fields(document)?;
    let (paths, definitions) = part(&document, &document, "definitions", (prefix, DEFINITIONS))?;
    Ok(PackedDoc::json(&object([
        ("paths", paths.into()),
        ("definitions", definitions.into()),
    ])))
}

/// The same of a document of v3, as a whole document.
///
/// # Errors
/// If it is not JSON.
pub fn part_of_v3(document: &[u8], prefix: &str) -> serde_json::Result<PackedDoc> {
    let document = fields(document)?;
    let components = member(&document, "components")?;
    let (paths, schemas) = part(&document, &components, "schemas", (prefix, SCHEMAS))?;
    let title = prefix.trim_start_matches('/');
    Ok(PackedDoc::json(&object([
        ("openapi", "3.0.0".into()),
        ("info", json!({ "title": title, "version": "unversioned" })),
        ("paths", paths.into()),
        ("components", object([("schemas", schemas.into())])),
    ])))
}

/// An object of these fields, which `json!` would copy.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The fields of an object in an object; none if there is no such object.
fn member<'a>(of: &Fields<'a>, name: &str) -> serde_json::Result<Fields<'a>> {
    let text = of.get(name).map_or("null", |text| text.get());
    fields(text.as_bytes())
}

/// The paths of a version in a document, and what they use of the schemas in a field, references to which begin with a text. Other references
/// lead nowhere in a document of this server, and clients refuse the whole document for one: they are left out.
fn part(
    document: &Fields<'_>,
    holder: &Fields<'_>,
    field: &str,
    (prefix, begin): (&str, &str),
) -> serde_json::Result<(Map<String, Value>, Map<String, Value>)> {
    let below = format!("{prefix}/");
    let known = member(holder, field)?;
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    let mut pending = Vec::new();
    let read = |text: &RawValue, pending: &mut Vec<String>| {
        let value: Value = serde_json::from_str(text.get())?;
        let mut names = Vec::new();
        references(&value, begin, &mut names);
        pending.extend(names.into_iter().map(str::to_owned));
        Ok::<_, serde_json::Error>(value)
    };
    for (path, item) in member(document, "paths")? {
        if is_name(&path) && (path == prefix || path.starts_with(&below)) {
            let item = read(item, &mut pending)?;
            paths.insert(path.into_owned(), item);
        }
    }
    while let Some(name) = pending.pop() {
        if let Some(schema) = known.get(&*name).filter(|_| is_name(&name))
            && !schemas.contains_key(&name)
        {
            let schema = read(schema, &mut pending)?;
            schemas.insert(name, schema);
        }
    }
    let used: BTreeSet<String> = schemas.keys().cloned().collect();
    let is_kept = |reference: &str| {
        let name = reference.strip_prefix(begin);
        name.is_some_and(|name| used.contains(name))
    };
    let kept = paths.values_mut().chain(schemas.values_mut());
    kept.for_each(|value| keep_references(value, &is_kept));
    Ok((paths, schemas))
}

/// Removes the references of a value that are not kept.
fn keep_references(value: &mut Value, is_kept: &impl Fn(&str) -> bool) {
    let is_lost = |value: &Value| value.as_str().is_some_and(|text| !is_kept(text));
    match value {
        Value::Object(fields) => {
            fields.retain(|key, value| key != "$ref" || !is_lost(value));
            let values = fields.values_mut();
            values.for_each(|value| keep_references(value, is_kept));
        }
        Value::Array(items) => {
            items.retain(|item| item.get("$ref").is_none_or(|to| !is_lost(to)));
            let items = items.iter_mut();
            items.for_each(|item| keep_references(item, is_kept));
        }
        _ => {}
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
        let text = document.to_string();
        let part = unpacked(&part_of_v2(text.as_bytes(), "/apis/g/v1").unwrap());
        check_part((&part["paths"], &part["definitions"]), DEFINITIONS);
    }

    #[test]
    fn a_part_of_v3_has_its_paths_and_what_they_use() {
        let (paths, schemas) = hostile(SCHEMAS);
        let document = json!({
            "openapi": "2.9", "info": {"title": "evil\n"}, "servers": [{"url": "https://elsewhere.test"}],
            "paths": paths, "components": {"schemas": schemas, "examples": {}},
        });
        let text = document.to_string();
        let part = unpacked(&part_of_v3(text.as_bytes(), "/apis/g/v1").unwrap());
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
            json!([{"/apis/g/v1/": {}}]),
        ] {
            let text = document.to_string();
            let part = unpacked(&part_of_v3(text.as_bytes(), "/apis/g/v1").unwrap());
            assert_eq!(part["components"]["schemas"], json!({}), "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        for text in [
            "{\"paths\": {",
            "",
            "{}}",
            "{\"paths\": {\"/apis/g/v1/\": {\"a\" 1}}}",
        ] {
            assert!(part_of_v2(text.as_bytes(), "/apis/g/v1").is_err(), "{text}");
        }
        let deep = format!(
            "{{\"paths\": {{\"/apis/g/v1/\": {}{}}}}}",
            "[".repeat(200),
            "]".repeat(200)
        );
        assert!(part_of_v3(deep.as_bytes(), "/apis/g/v1").is_err());
        assert!(part_of_v3(deep.as_bytes(), "/apis/g/v2").is_ok());
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
