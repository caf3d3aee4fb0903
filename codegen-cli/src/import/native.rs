//! Kinds of Kubernetes itself: what their documents of OpenAPI say of Go types, as semantics that keys of any kind can say.
//!
//! Go has no absence: what a client leaves out of a struct is its zero value, and is printed unless the field is `omitempty`.
//! A document says so by `default: {}`, `""`, `0` or `false`, and lists the same fields as required, which is about printing.
//! What a client must send is decided by code that no document shows. Here it is what this code asks for in nearly all kinds:
//! texts and numbers of a spec, and texts elsewhere but in a status. The components that a spec has are read alike everywhere.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::components::remove_zero;
use super::definition::{items, texts};
use super::known;
use super::markers::{COMPONENT, DUPLICATES, TYPE};

/// Whether the schema of a kind is that of a Go type: its metadata is a struct without a pointer. Kinds of definitions, and
/// those of this server, have metadata without a default.
pub(super) fn is_native(kind: &Value) -> bool {
    kind["properties"]["metadata"]["default"] == Value::Object(Map::new())
}

/// The groups, and the kinds of other groups, whose status endpoints leave metadata alone; those of all others write it too.
const GROUPS_WITHOUT: [&str; 5] = [
    "admissionregistration.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "resource.k8s.io",
    "storagemigration.k8s.io",
];
const KINDS_WITHOUT: [(&str, &str); 2] = [
    ("networking.k8s.io", "ServiceCIDR"),
    ("storage.k8s.io", "VolumeAttachment"),
];

/// Whether the status endpoint of a kind writes metadata too.
pub(super) fn status_writes_metadata(group: &str, kind: &str) -> bool {
    !GROUPS_WITHOUT.contains(&group) && !KINDS_WITHOUT.contains(&(group, kind))
}

/// What a part of an object is for, from the most lenient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Purpose {
    Observed,
    Other,
    Desired,
}

impl Purpose {
    fn of_field(name: &str) -> Self {
        match name {
            "spec" => Self::Desired,
            "status" => Self::Observed,
            _ => Self::Other,
        }
    }

    /// Whether the zero value of a field passes the checks in code.
    fn accepts_zero(self, field: &Value) -> bool {
        match field["type"].as_str() {
            Some("boolean") => true,
            Some("integer" | "number") => self < Self::Desired,
            _ => self == Self::Observed,
        }
    }
}

/// Gives the schema of a kind, as [`super::components::Components`] reads it, the semantics of its Go types.
pub(super) fn settle(root: &mut Value) {
    let mut purposes = BTreeMap::new();
    for (name, field) in fields(root) {
        collect(field, Purpose::of_field(name), &mut purposes);
    }
    for (name, field) in fields_mut(root) {
        if name == "metadata" {
            remove_zero(field);
        }
        settle_below(field, Purpose::of_field(name), &purposes);
    }
    presence(root, Purpose::Other);
}

/// The strictest purpose of each component.
fn collect(schema: &Value, purpose: Purpose, purposes: &mut BTreeMap<String, Purpose>) {
    if let Some(name) = schema[COMPONENT].as_str() {
        let known = purposes.entry(name.to_owned()).or_insert(purpose);
        *known = purpose.max(*known);
    }
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            collect(&schema[below], purpose, purposes);
        }
    }
    for (_, field) in fields(schema) {
        collect(field, purpose, purposes);
    }
}

fn settle_below(schema: &mut Value, purpose: Purpose, purposes: &BTreeMap<String, Purpose>) {
    let is_known = schema[TYPE].is_string() || known::of(schema).is_some();
    if is_known {
        return;
    }
    if matches!(
        schema["x-kubernetes-list-type"].as_str(),
        Some("set" | "map")
    ) {
        schema[DUPLICATES] = true.into();
    }
    let own = schema[COMPONENT]
        .as_str()
        .and_then(|name| purposes.get(name));
    let purpose = own.copied().unwrap_or(purpose);
    for below in ["items", "additionalProperties"] {
        if schema[below].is_object() {
            settle_below(&mut schema[below], purpose, purposes);
        }
    }
    for (_, field) in fields_mut(schema) {
        settle_below(field, purpose, purposes);
    }
    presence(schema, purpose);
}

/// Decides which fields of a struct must be sent; the others have the zero values that Go prints. An empty struct of which
/// fields must be sent is no value: without it, Kubernetes misses these fields.
fn presence(schema: &mut Value, purpose: Purpose) {
    let mut required = texts(&schema["required"]);
    for (name, field) in fields_mut(schema) {
        let is_struct = field["default"].as_object().is_some_and(Map::is_empty);
        let is_listed = required.contains(name);
        let must_be_sent = if is_struct {
            !texts(&field["required"]).is_empty()
        } else {
            is_listed && !purpose.accepts_zero(field)
        };
        if must_be_sent || is_listed && !takes_default(field) {
            remove_zero(field);
        }
        required.retain(|known| known != name || must_be_sent);
        if must_be_sent && !is_listed {
            required.push(name.clone());
        }
    }
    if !required.is_empty() || schema.get("required").is_some() {
        schema["required"] = required.into();
    }
}

/// Whether a field takes its own default: the empty text is none of the values of an enum.
fn takes_default(field: &Value) -> bool {
    let values = items(&field["enum"]);
    values.is_empty() || values.contains(&field["default"])
}

fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    super::definition::entries(&schema["properties"])
}

fn fields_mut(schema: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    fields.into_iter().flatten()
}
