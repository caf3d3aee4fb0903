//! `components/schemas` of a document: the kinds and their lists.

use apiloom_meta::ResourceDef;
use apiloom_meta::kind::{Publication, SelectableField};
use apiloom_meta::schema::plain_text;
use serde_json::{Value, json};

use super::meta_types;
use super::names::{self, described, gvk, meta, reference};

/// Description of `metadata` in every object, which clients look for in what `kubectl explain` prints.
const METADATA: &str =
    "Standard object's metadata, which the server and its clients have in common.";

/// The component of a kind.
pub(super) fn name(def: &ResourceDef) -> String {
    names::component(&def.group, &def.version, &def.kind)
}

/// The component of a kind's list.
pub(super) fn list_name(def: &ResourceDef) -> String {
    names::component(&def.group, &def.version, &def.list_kind)
}

/// The schema of a kind with its metadata as a reference.
pub(super) fn kind_schema(def: &ResourceDef, mut schema: Value) -> Value {
    describe_root(&mut schema, def);
    // The description of the type would appear twice for readers of the reference.
    let metadata = described(&meta("ObjectMeta"), METADATA);
    schema["properties"]["metadata"] = metadata;
    if def.dialect.openapi == Publication::Program {
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
pub(crate) fn forget_required_metadata(schema: &mut Value) {
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
pub(crate) fn describe_root(schema: &mut Value, def: &ResourceDef) {
    if !schema.is_object() {
        *schema = json!({ "type": "object" });
    }
    let description = plain_text(&def.description);
    // A document has its own description already.
    if def.dialect.openapi == Publication::Program && !description.is_empty() {
        schema["description"] = description.into();
    }
    for (field, text) in [
        ("apiVersion", meta_types::API_VERSION),
        ("kind", meta_types::KIND),
    ] {
        schema["properties"][field] = json!({ "type": "string", "description": text });
    }
}

pub(super) fn list_schema(def: &ResourceDef) -> Value {
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
    if def.dialect.openapi == Publication::Definition {
        add_selectable(&mut schema, def);
    }
    schema
}
