//! Secret values, left out of what is recorded of a request: each becomes null, so that a reader sees that there was one.

use serde_json::Value;

use super::Schema;
use super::node::{Child, Node, child};

/// The annotation in which kubectl keeps the whole document that it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Conceals the secret values of a document of a schema, or of a part of one, such as a merge patch: those of the type's sensitive
/// fields, and the copy of the document that kubectl keeps in an annotation.
///
/// ```
/// use apiloom_schema::{Hooks, Schema, conceal};
/// use serde_json::json;
/// let password = json!({"type": "string", "x-apiloom-sensitive": true});
/// let user = json!({"type": "string"});
/// let schema = json!({"type": "object", "properties": {"user": user, "password": password}});
/// let schema = Schema::from_json(&schema, &Hooks::default())?;
/// let mut document = json!({"user": "joan", "password": "cat"});
/// conceal(&schema, &mut document);
/// assert_eq!(document, json!({"user": "joan", "password": null}));
/// # Ok::<(), apiloom_schema::SchemaErrors>(())
/// ```
pub fn conceal(schema: &Schema, document: &mut Value) {
    if schema.has_sensitive {
        walk(schema.root(), document);
        let applied = document
            .pointer_mut("/metadata/annotations")
            .and_then(|annotations| annotations.get_mut(LAST_APPLIED));
        if let Some(applied) = applied {
            *applied = Value::Null;
        }
    }
}

/// As [`conceal`], of the steps of a JSON patch (RFC 6902): the values that they write.
pub fn conceal_steps(schema: &Schema, steps: &mut Value) {
    if !schema.has_sensitive {
        return;
    }
    if !steps.is_array() {
        // No list of steps: it is refused, and says nothing of where its values would be.
        *steps = Value::Null;
        return;
    }
    for step in steps.as_array_mut().into_iter().flatten() {
        let path = step.get("path").and_then(Value::as_str).unwrap_or_default();
        let path = path.to_owned();
        if let Some(value) = step.get_mut("value") {
            conceal_at(schema, &path, value);
        }
    }
}

/// Conceals a value that a step writes to this place.
fn conceal_at(schema: &Schema, path: &str, value: &mut Value) {
    if path.is_empty() {
        return conceal(schema, value);
    }
    if !path.starts_with('/') || path.starts_with("/metadata") {
        // No place at all, and an annotation has a copy of the document.
        *value = Value::Null;
        return;
    }
    let mut node = schema.root();
    for step in path.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let below = node.items.as_deref();
        let Some(below) = below.or_else(|| child(Some(node), &step)) else {
            // A place that the type does not have: the name may be misspelt.
            *value = Value::Null;
            return;
        };
        node = below;
        if node.is_sensitive {
            break;
        }
    }
    walk(node, value);
}

/// Conceals what is secret in a value of a node.
fn walk(node: &Node, value: &mut Value) {
    if node.is_sensitive {
        *value = Value::Null;
        return;
    }
    match (value, &node.items) {
        (Value::Object(fields), _) => {
            for (name, field) in fields {
                match node.child(name) {
                    Child::Node(below) => walk(below, field),
                    Child::Free => {}
                    // A name that the type does not have may be misspelt.
                    Child::Unknown => *field = Value::Null,
                }
            }
        }
        (Value::Array(items), Some(below)) => items.iter_mut().for_each(|item| walk(below, item)),
        // A value in place of another type's may be that of a part of it.
        (value, _) if has_parts(node) => *value = Value::Null,
        _ => {}
    }
}

/// Whether values of a node have parts with nodes of their own.
fn has_parts(node: &Node) -> bool {
    !node.properties.is_empty() || node.items.is_some() || node.additional.is_some()
}

#[cfg(all(test, feature = "build"))]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Hooks;

    fn schema() -> Schema {
        let secret = json!({"type": "object", "additionalProperties": {"type": "string"}, "x-apiloom-sensitive": true});
        let user = json!({"type": "object", "properties": {
            "name": {"type": "string"},
            "token": {"type": "string", "x-apiloom-sensitive": true},
        }});
        let document = json!({"type": "object", "properties": {
            "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "data": secret,
            "users": {"type": "array", "items": user},
        }});
        Schema::from_json(&document, &Hooks::default()).expect("a schema")
    }

    #[test]
    fn secret_values_are_null_wherever_they_are() {
        let mut document = json!({
            "metadata": {"name": "a", "annotations": {LAST_APPLIED: "{\"data\":\"cat\"}", "other": "b"}},
            "data": {"a": "cat"},
            "users": [{"name": "joan", "token": "cat"}, {"name": "jim"}],
            "unknown": 1,
        });
        conceal(&schema(), &mut document);
        let shown = json!({
            "metadata": {"name": "a", "annotations": {LAST_APPLIED: null, "other": "b"}},
            "data": null,
            "users": [{"name": "joan", "token": null}, {"name": "jim"}],
            "unknown": null,
        });
        assert_eq!(document, shown);
        for mistyped in [json!(["cat"]), json!("cat")] {
            let mut document = mistyped.clone();
            conceal(&schema(), &mut document);
            assert_eq!(document, Value::Null);
            let mut document = json!({"users": [mistyped]});
            conceal(&schema(), &mut document);
            assert_eq!(document, json!({"users": [null]}));
        }
    }

    #[test]
    fn steps_of_a_patch_show_no_secret_value() {
        let mut steps = json!([
            {"op": "add", "path": "/data/a", "value": "cat"},
            {"op": "replace", "path": "/data", "value": {"a": "cat"}},
            {"op": "add", "path": "/users/-", "value": {"name": "joan", "token": "cat"}},
            {"op": "replace", "path": "/users/0/token", "value": "cat"},
            {"op": "replace", "path": "/users/0/name", "value": "joan"},
            {"op": "add", "path": "/metadata/annotations/x", "value": "cat"},
            {"op": "replace", "path": "", "value": {"data": {"a": "cat"}}},
            {"op": "remove", "path": "/data"},
            {"op": "add", "path": "data/a", "value": "cat"},
            {"op": "add", "path": "/Data/a", "value": "cat"},
        ]);
        conceal_steps(&schema(), &mut steps);
        let values: Vec<_> = steps.as_array().unwrap().iter().collect();
        let values: Vec<_> = values.iter().map(|step| step.get("value")).collect();
        let joan = json!({"name": "joan", "token": null});
        let whole = json!({"data": null});
        let (null, name) = (Value::Null, json!("joan"));
        let shown = [
            Some(&null),
            Some(&null),
            Some(&joan),
            Some(&null),
            Some(&name),
            Some(&null),
            Some(&whole),
            None,
            Some(&null),
            Some(&null),
        ];
        assert_eq!(values, shown);
        let mut single = json!({"op": "add", "path": "/data/a", "value": "cat"});
        conceal_steps(&schema(), &mut single);
        assert_eq!(single, Value::Null);
    }
}
