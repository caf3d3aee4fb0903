//! The metadata of objects that are embedded in others.

use apiloom_schema::tree::{Child, Node};
use serde_json::{Map, Value};

use super::validate_create;
use crate::field::{FieldError, FieldPath};
use crate::kind::{NameFormat, Scope};
use crate::object::Object;
use crate::schema::Schema;

/// Validates the metadata of the objects that a document embeds, where its schema has `x-kubernetes-embedded-resource`.
/// A name is optional there. [`Schema::validate`] checks their `apiVersion` and `kind`.
///
/// ```
/// use apiloom_meta::{schema::Schema, validation::embedded_errors};
/// use serde_json::json;
/// let schema = Schema::of_custom_resource(&json!({"type": "object", "properties": {"template": {
///     "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}))?;
/// let document = json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "-"}}});
/// let errors = embedded_errors(&schema, &document);
/// assert_eq!(errors[0].path.as_str(), "template.metadata.namespace");
/// # Ok::<(), apiloom_meta::schema::SchemaErrors>(())
/// ```
pub fn embedded_errors(schema: &Schema, document: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if schema.has_embedded() {
        walk(schema.root(), document, &FieldPath::root(), &mut errors);
    }
    errors
}

fn walk(node: &Node, value: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            if node.embedded_resource {
                metadata(fields, path, errors);
            }
            for (name, value) in fields {
                if let Child::Node(below) = node.child(name) {
                    let at = if node.property(name).is_some() {
                        path.child(name)
                    } else {
                        path.key(name)
                    };
                    walk(below, value, &at, errors);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(below) = &node.items {
                    walk(below, item, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn metadata(fields: &Map<String, Value>, at: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(Value::Object(metadata)) = fields.get("metadata") else {
        return;
    };
    let text = |name: &str| {
        metadata
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let scope = if text("namespace").is_empty() {
        Scope::Cluster
    } else {
        Scope::Namespaced
    };
    let is_unnamed = text("name").is_empty();
    let mut metadata = metadata.clone();
    if is_unnamed {
        metadata.insert("name".to_owned(), "unnamed".into());
    }
    let mut object = Map::new();
    object.insert("metadata".to_owned(), Value::Object(metadata));
    let found = validate_create(&Object::new(object), scope, NameFormat::PathSegment);
    errors.extend(found.into_iter().map(|error| FieldError {
        path: FieldPath::new(format!("{}.{}", at.as_str(), error.path.as_str())),
        ..error
    }));
}
