//! `components/schemas` of a document: the kinds, their lists, and all types they refer to.

use apiloom_meta::ResourceDef;
use apiloom_meta::kind::SelectableField;
use apiloom_meta::schema::plain_text;
use serde_json::{Map, Value, json};

use super::meta_types;
use super::names::{self, described, gvk, meta, reference};

/// Description of `metadata` in every object, which clients look for in what `kubectl explain` prints.
const METADATA: &str =
    "Standard object's metadata, which the server and its clients have in common.";

/// A kind with the schema of its version.
pub(super) struct KindSchema<'a> {
    pub(super) def: &'a ResourceDef,
    pub(super) schema: Value,
}

/// The component of a kind.
pub(super) fn name(def: &ResourceDef) -> String {
    names::component(&def.group, &def.version, &def.kind)
}

/// The component of a kind's list.
pub(super) fn list_name(def: &ResourceDef) -> String {
    names::component(&def.group, &def.version, &def.list_kind)
}

/// The schemas of the kinds and their lists, and those to which they and `paths` refer.
pub(super) fn schemas(
    kinds: Vec<KindSchema<'_>>,
    paths: &Map<String, Value>,
) -> Map<String, Value> {
    let mut schemas = Map::new();
    let mut wanted = Vec::new();
    paths
        .values()
        .for_each(|path| references(path, &mut wanted));
    // Kinds of bodies belong to groups that are not served.
    let served = kinds.iter().filter(|kind| !kind.def.verbs.is_empty());
    let mut groups: Vec<(&str, &str)> = served
        .map(|kind| (&*kind.def.group, &*kind.def.version))
        .collect();
    groups.sort_unstable();
    groups.dedup();
    for KindSchema { def, schema } in kinds {
        schemas.insert(name(def), kind_schema(def, schema));
        if def.has_verb(apiloom_meta::kind::Verb::List) {
            schemas.insert(list_name(def), list_schema(def));
        }
    }
    schemas
        .values()
        .for_each(|schema| references(schema, &mut wanted));
    while let Some(component) = wanted.pop() {
        if schemas.contains_key(&component) {
            continue;
        }
        if let Some(schema) =
            names::meta_type(&component).and_then(|kind| meta_types::component(kind, &groups))
        {
            references(&schema, &mut wanted);
            schemas.insert(component, schema);
        }
    }
    schemas
}

/// The schema of a kind with its metadata as a reference.
fn kind_schema(def: &ResourceDef, mut schema: Value) -> Value {
    describe_root(&mut schema, def);
    // The description of the type would appear twice for readers of the reference.
    let metadata = described(&meta("ObjectMeta"), METADATA);
    schema["properties"]["metadata"] = metadata;
    if def.custom.is_none() {
        forget_required_metadata(&mut schema);
    }
    add_kind(&mut schema, def);
    schema
}

/// Adds the kind of a root, and the fields by which its objects can be selected.
pub(super) fn add_kind(schema: &mut Value, def: &ResourceDef) {
    schema["x-kubernetes-group-version-kind"] = json!([gvk(&def.group, &def.version, &def.kind)]);
    add_selectable(schema, def);
}

fn add_selectable(schema: &mut Value, def: &ResourceDef) {
    let fields = def.selectable.iter().filter_map(SelectableField::path);
    let fields: Vec<Value> = fields
        .map(|path| json!({ "fieldPath": path.as_field() }))
        .collect();
    if !fields.is_empty() {
        schema["x-kubernetes-selectable-fields"] = fields.into();
    }
}

/// Makes metadata optional: the Rust types require it, but Kubernetes' documents do not, since the name is validated
/// separately.
pub(in crate::http) fn forget_required_metadata(schema: &mut Value) {
    let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) else {
        return;
    };
    required.retain(|field| field != "metadata");
    if required.is_empty() {
        schema
            .as_object_mut()
            .map(|schema| schema.remove("required"));
    }
}

/// Adds the kind's documentation, and the descriptions of `apiVersion` and `kind`.
pub(in crate::http) fn describe_root(schema: &mut Value, def: &ResourceDef) {
    if !schema.is_object() {
        *schema = json!({ "type": "object" });
    }
    let description = plain_text(&def.description);
    // A document has its own description already.
    if def.custom.is_none() && !description.is_empty() {
        schema["description"] = description.into();
    }
    for (field, text) in [
        ("apiVersion", meta_types::API_VERSION),
        ("kind", meta_types::KIND),
    ] {
        schema["properties"][field] = json!({ "type": "string", "description": text });
    }
}

fn list_schema(def: &ResourceDef) -> Value {
    let mut schema = json!({
        "type": "object",
        "description": format!("{} is a list of {}.", def.list_kind, def.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": { "type": "string", "description": meta_types::API_VERSION },
            "kind": { "type": "string", "description": meta_types::KIND },
            "metadata": described(&meta("ListMeta"), "The state that the list shows, and where it goes on."),
            "items": { "type": "array", "items": reference(&name(def)), "description": format!("The {}.", def.plural) },
        },
        "x-kubernetes-group-version-kind": [gvk(&def.group, &def.version, &def.list_kind)],
    });
    if def.custom.is_some() {
        add_selectable(&mut schema, def);
    }
    schema
}

/// Appends the names of the components to which a value refers.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(name) = map
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|r| r.strip_prefix("#/components/schemas/"))
            {
                found.push(name.to_owned());
            }
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
