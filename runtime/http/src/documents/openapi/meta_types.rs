//! The components of `meta/v1`: generated from Rust types where these exist, written by hand otherwise.
//!
//! Schemas give the fields and their descriptions; properties that schemars does not derive (required fields of types
//! whose fields all have a default, list topology) are added here.

use apiloom_meta::{
    ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference, Status, StatusCause, StatusDetails,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::names::{described, gvk, meta, reference};

/// The component of a type of `meta/v1`; `groups` are the group and version pairs of the document, in whose requests
/// the type may occur.
pub(super) fn component(name: &str, groups: &[(&str, &str)]) -> Option<Value> {
    Some(match name {
        "ObjectMeta" => object_meta(),
        "ListMeta" => of::<ListMeta>(),
        "OwnerReference" => owner_reference(),
        "ManagedFieldsEntry" => managed_fields_entry(),
        "Status" => status(),
        "StatusDetails" => status_details(),
        "StatusCause" => of::<StatusCause>(),
        "DeleteOptions" => delete_options(groups),
        "Preconditions" => preconditions(),
        "WatchEvent" => watch_event(groups),
        "APIResourceList" => api_resource_list(),
        "APIResource" => api_resource(),
        "Patch" => json!({
            "type": "object",
            "description": "Patch is a change in the format that the Content-Type of the request names.",
        }),
        "FieldsV1" => json!({
            "type": "object",
            "description": "FieldsV1 is a set of fields as a trie. Keys are `f:NAME` for a field, `k:KEYS` for the list item with \
                these keys, `v:VALUE` for the list item with this value, `i:INDEX` for a position, and `.` for the value itself.",
        }),
        "Time" => json!({
            "type": "string",
            "format": "date-time",
            "description": "Time is a point in time in RFC 3339, in UTC with second precision.",
        }),
        _ => return None,
    })
}

/// Description of `apiVersion` in every object. Clients look for its beginning in what `kubectl explain` prints.
pub(super) const API_VERSION: &str = "APIVersion defines the group and version that this object is written in, such as `apps/v1`. \
    The server converts versions it knows and refuses others.";

/// Description of `kind` in every object.
pub(super) const KIND: &str = "The kind of this object, in CamelCase. The server infers it from the path and it cannot be changed.";

fn object_meta() -> Value {
    let mut schema = of::<ObjectMeta>();
    let text = "CreationTimestamp is a timestamp in UTC with second precision, at which the object was created. Set by the server.";
    extend_field(
        &mut schema,
        "creationTimestamp",
        json!({ "description": text }),
    );
    schema
}

fn owner_reference() -> Value {
    let atomic = json!({ "x-kubernetes-map-type": "atomic" });
    let mut schema = with(of::<OwnerReference>(), atomic);
    require_texts(&mut schema, &["apiVersion", "kind", "name", "uid"]);
    schema
}

fn status() -> Value {
    let kind = json!({ "x-kubernetes-group-version-kind": [gvk("", "v1", "Status")] });
    let mut schema = with(of::<Status>(), kind);
    extend_field(&mut schema, "metadata", json!({ "default": {} }));
    schema
}

fn managed_fields_entry() -> Value {
    let mut schema = of::<ManagedFieldsEntry>();
    if let Some(field) = schema.pointer_mut("/properties/fieldsV1") {
        let text = field["description"].as_str().unwrap_or_default().to_owned();
        *field = described(&meta("FieldsV1"), &text);
    }
    schema
}

fn status_details() -> Value {
    let mut schema = of::<StatusDetails>();
    extend_field(
        &mut schema,
        "causes",
        json!({ "x-kubernetes-list-type": "atomic" }),
    );
    schema
}

fn delete_options(groups: &[(&str, &str)]) -> Value {
    json!({
        "type": "object",
        "description": "DeleteOptions may be sent as the body of a deletion.",
        "properties": {
            "apiVersion": { "type": "string", "description": API_VERSION },
            "kind": { "type": "string", "description": KIND },
            "dryRun": {
                "type": "array",
                "items": item_of(json!({ "type": "string" })),
                "x-kubernetes-list-type": "atomic",
                "description": "With `All`, every stage of the request is run but nothing is stored.",
            },
            "gracePeriodSeconds": {
                "type": "integer",
                "format": "int64",
                "description": "Seconds before the object is deleted; 0 deletes at once. The kind has a default.",
            },
            "orphanDependents": {
                "type": "boolean",
                "description": "Deprecated, use propagationPolicy. Whether dependents are kept.",
            },
            "preconditions": described(&meta("Preconditions"), "What must hold for the deletion to happen; otherwise 409."),
            "propagationPolicy": {
                "type": "string",
                "description": "What becomes of dependents: `Orphan` keeps them, `Background` deletes them after the object, \
                    `Foreground` deletes them before it.",
            },
        },
        "x-kubernetes-group-version-kind": kinds_everywhere("DeleteOptions", groups),
    })
}

fn preconditions() -> Value {
    json!({
        "type": "object",
        "description": "Preconditions must hold for an operation to happen.",
        "properties": {
            "resourceVersion": { "type": "string", "description": "The resourceVersion the object must have." },
            "uid": { "type": "string", "description": "The uid the object must have." },
        },
    })
}

fn watch_event(groups: &[(&str, &str)]) -> Value {
    json!({
        "type": "object",
        "description": "WatchEvent is one event of a watch.",
        "required": ["type", "object"],
        "properties": {
            "type": { "type": "string", "description": "`ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`." },
            "object": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "description": "The object as it is after the change, or was before its deletion; for `BOOKMARK` only its \
                    resourceVersion; for `ERROR` a Status.",
            },
        },
        "x-kubernetes-group-version-kind": kinds_everywhere("WatchEvent", groups),
    })
}

fn api_resource_list() -> Value {
    json!({
        "type": "object",
        "description": "APIResourceList names the resources of a group and version, and what they can do.",
        "required": ["groupVersion", "resources"],
        "properties": {
            "apiVersion": { "type": "string", "description": API_VERSION },
            "kind": { "type": "string", "description": KIND },
            "groupVersion": { "type": "string", "description": "The group and version." },
            "resources": {
                "type": "array",
                "items": item_of(reference(&meta("APIResource"))),
                "x-kubernetes-list-type": "atomic",
                "description": "The resources and their subresources.",
            },
        },
        "x-kubernetes-group-version-kind": [gvk("", "v1", "APIResourceList")],
    })
}

fn api_resource() -> Value {
    let names = |description: &str| json!({ "type": "array", "items": item_of(json!({ "type": "string" })), "x-kubernetes-list-type": "atomic", "description": description });
    json!({
        "type": "object",
        "description": "APIResource is a resource or a subresource.",
        "required": ["name", "singularName", "namespaced", "kind", "verbs"],
        "properties": {
            "name": { "type": "string", "description": "The plural, as in the path; subresources behind a slash." },
            "singularName": { "type": "string", "description": "The singular, for people." },
            "namespaced": { "type": "boolean", "description": "Whether objects live in a namespace." },
            "group": { "type": "string", "description": "The group of the kind, where it is not that of the list." },
            "version": { "type": "string", "description": "The version of the kind, where it is not that of the list." },
            "kind": { "type": "string", "description": "The kind." },
            "verbs": names("What can be done."),
            "shortNames": names("Short names for command lines."),
            "categories": names("Groups of resources, such as `all`."),
            "storageVersionHash": { "type": "string", "description": "Changes when objects are stored in another version." },
        },
    })
}

/// `x-kubernetes-group-version-kind` for a kind of `meta/v1` that exists in the core group and in every group and
/// version of the document.
fn kinds_everywhere(kind: &str, groups: &[(&str, &str)]) -> Value {
    let mut all = vec![("", "v1")];
    all.extend(groups.iter().filter(|known| **known != ("", "v1")));
    all.into_iter()
        .map(|(group, version)| gvk(group, version, kind))
        .collect()
}

/// The schema of a Rust type, with references and wrappers as in Kubernetes' documents.
fn of<T: JsonSchema>() -> Value {
    let schema = SchemaSettings::openapi3()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    let mut clean = Map::new();
    clean.insert("type".into(), "object".into());
    if let Some(description) = schema.get("description") {
        clean.insert("description".into(), description.clone());
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    clean.insert(
        "properties".into(),
        properties
            .map(|(name, field)| (name.clone(), field_of(field)))
            .collect(),
    );
    Value::Object(clean)
}

/// The schema of one field, without `null`, Rust's defaults and unsigned formats, which the API does not have.
fn field_of(field: &Value) -> Value {
    let wrapped = ["allOf", "anyOf", "oneOf"].iter().find_map(|key| {
        field
            .get(*key)?
            .as_array()?
            .iter()
            .find(|f| f.get("$ref").is_some())
    });
    if let Some(target) = wrapped.or(Some(field)).and_then(|f| f["$ref"].as_str()) {
        let component = meta(target.rsplit('/').next().unwrap_or(target));
        return match field["description"].as_str() {
            Some(text) => described(&component, text),
            None => reference(&component),
        };
    }
    if field["format"] == "date-time" {
        return described(
            &meta("Time"),
            field["description"].as_str().unwrap_or_default(),
        );
    }
    let mut clean = Map::new();
    for (key, value) in field.as_object().into_iter().flatten() {
        let value = match (key.as_str(), value) {
            ("nullable" | "default" | "title" | "minimum" | "maximum", _) => continue,
            ("type", Value::Array(types)) => types
                .iter()
                .find(|name| *name != "null")
                .cloned()
                .unwrap_or_default(),
            ("format", Value::String(format)) if format.starts_with("uint") => "int32".into(),
            ("items" | "additionalProperties", Value::Object(_)) => item_of(field_of(value)),
            _ => value.clone(),
        };
        clean.insert(key.clone(), value);
    }
    Value::Object(clean)
}

/// The schema of an item or of a value of a map, with the empty value that Go has in the place of a null.
fn item_of(mut item: Value) -> Value {
    if item.get("$ref").is_some() {
        return json!({ "allOf": [item], "default": {} });
    }
    if item["type"] == "string" {
        item["default"] = "".into();
    }
    item
}

/// Makes fields required, which are empty texts in Go if they are missing.
fn require_texts(schema: &mut Value, fields: &[&str]) {
    schema["required"] = json!(fields);
    for field in fields {
        extend_field(schema, field, json!({ "default": "" }));
    }
}

fn with(mut schema: Value, extra: Value) -> Value {
    merge(&mut schema, extra);
    schema
}

fn extend_field(schema: &mut Value, field: &str, extra: Value) {
    if let Some(field) = schema
        .get_mut("properties")
        .and_then(|properties| properties.get_mut(field))
    {
        merge(field, extra);
    }
}

fn merge(into: &mut Value, extra: Value) {
    if let (Value::Object(into), Value::Object(extra)) = (into, extra) {
        into.extend(extra);
    }
}
