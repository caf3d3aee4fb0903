//! The conditions of webhooks, and what they are about.

use std::sync::LazyLock;

use apiloom_cel::{Condition, Variables};
use serde_json::{Value, json};

/// Compiles a condition about `object`, `oldObject`, `namespaceObject` and `request`, in the order of their values.
///
/// # Errors
/// Why it is none, in the words of kube-apiserver.
pub fn compile(expression: &str) -> Result<Condition, String> {
    static VARIABLES: LazyLock<Variables> = LazyLock::new(|| {
        Variables::default()
            .any("object")
            .any("oldObject")
            .object("namespaceObject", &namespace(), &[])
            .object("request", &request(), &["options"])
    });
    Condition::compile(expression, &VARIABLES)
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn map(values: Value) -> Value {
    json!({"type": "object", "additionalProperties": values})
}

/// An AdmissionRequest but for the objects, which are variables of their own.
fn request() -> Value {
    let text = json!({"type": "string"});
    let kind = object(json!({"group": text, "version": text, "kind": text}));
    let resource = object(json!({"group": text, "version": text, "resource": text}));
    let user = object(json!({
        "username": text,
        "uid": text,
        "groups": list(text.clone()),
        "extra": map(list(text.clone())),
    }));
    object(json!({
        "kind": kind,
        "resource": resource,
        "subResource": text,
        "requestKind": kind,
        "requestResource": resource,
        "requestSubResource": text,
        "name": text,
        "namespace": text,
        "operation": text,
        "userInfo": user,
        "dryRun": {"type": "boolean"},
    }))
}

/// What expressions see of the namespace of an object.
fn namespace() -> Value {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let integer = json!({"type": "integer"});
    let condition = object(json!({
        "status": text,
        "type": text,
        "lastTransitionTime": time,
        "message": text,
        "reason": text,
    }));
    object(json!({
        "metadata": object(json!({
            "name": text,
            "generateName": text,
            "namespace": text,
            "labels": map(text.clone()),
            "annotations": map(text.clone()),
            "UID": text,
            "creationTimestamp": time,
            "deletionGracePeriodSeconds": integer,
            "deletionTimestamp": time,
            "generation": integer,
            "resourceVersion": text,
            "finalizers": list(text.clone()),
        })),
        "spec": object(json!({"finalizers": list(text.clone())})),
        "status": object(json!({"conditions": list(condition), "phase": text})),
    }))
}
