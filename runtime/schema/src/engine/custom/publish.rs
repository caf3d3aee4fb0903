//! What is published in OpenAPI for a custom resource: its document, with the fields of every object.

use serde_json::{Map, Value, json};

use super::super::build::object_meta;
use super::super::openapi::{self, Metadata};
use super::super::recursion::PRESERVE;

const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const JUNCTORS: [&str; 4] = ["allOf", "anyOf", "not", "oneOf"];

/// OpenAPI v3.
pub(in super::super) fn v3(mut document: Value, metadata: &Metadata<'_>) -> Value {
    let publisher = Publisher {
        metadata,
        swagger: false,
    };
    publisher.add_alternatives(&mut document);
    publisher.object(&mut document);
    document
}

/// Swagger 2.0. Clients check documents with it, so everything that it cannot express is left out.
pub(in super::super) fn v2(mut document: Value, metadata: &Metadata<'_>) -> Value {
    // With more, clients would refuse unknown fields.
    if is_true(&document, PRESERVE) {
        return json!({"type": "object"});
    }
    let publisher = Publisher {
        metadata,
        swagger: true,
    };
    publisher.drop_unsupported(&mut document);
    publisher.object(&mut document);
    document
}

fn is_true(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

/// The schemas of the parts of a value.
fn parts(schema: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    let mut properties = None;
    let mut others = Vec::new();
    for (name, value) in schema {
        match name.as_str() {
            "properties" => properties = value.as_object_mut(),
            "items" | "additionalProperties" => others.push(value),
            _ => {}
        }
    }
    let properties = properties.into_iter().flat_map(Map::values_mut);
    properties.chain(others)
}

struct Publisher<'a> {
    metadata: &'a Metadata<'a>,
    swagger: bool,
}

impl Publisher<'_> {
    /// Adds the fields of every object to the root and to embedded objects.
    fn object(&self, document: &mut Value) {
        self.embedded(document);
        if let Value::Object(schema) = document {
            self.add_fields(schema);
        }
    }

    fn embedded(&self, document: &mut Value) {
        let is_embedded = is_true(document, EMBEDDED);
        let is_open = is_true(document, PRESERVE);
        let Value::Object(schema) = document else {
            return;
        };
        for part in parts(schema) {
            self.embedded(part);
        }
        if !is_embedded || (is_open && self.swagger) {
            return;
        }
        self.add_fields(schema);
        let required = schema.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(required) = required {
            for name in ["kind", "apiVersion"] {
                if !required.contains(&json!(name)) {
                    required.push(json!(name));
                }
            }
        }
    }

    fn add_fields(&self, schema: &mut Map<String, Value>) {
        let meta = object_meta();
        let mut metadata = match self.metadata {
            Metadata::Open => json!({"type": "object"}),
            Metadata::Inline if self.swagger => openapi::v2(&meta, self.metadata),
            Metadata::Inline => openapi::v3(&meta, self.metadata),
            Metadata::Ref(target) if self.swagger => json!({"$ref": target}),
            Metadata::Ref(target) => json!({"allOf": [{"$ref": target}]}),
        };
        metadata["description"] = json!(meta.description);
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        let Value::Object(properties) = properties else {
            return;
        };
        for (name, description) in super::super::root::TYPE_FIELDS {
            let field = json!({"type": "string", "description": description});
            properties.insert(name.to_owned(), field);
        }
        properties.insert("metadata".to_owned(), metadata);
    }

    /// Adds the two types of values that are integers or strings, which clients do not know otherwise.
    fn add_alternatives(&self, document: &mut Value) {
        let is_either = is_true(document, INT_OR_STRING);
        let Value::Object(schema) = document else {
            return;
        };
        for part in parts(schema) {
            self.add_alternatives(part);
        }
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        let first = schema.get("allOf").and_then(|all| all.get(0));
        let is_said = schema.get("anyOf") == Some(&either)
            || first.is_some_and(|first| first.get("anyOf") == Some(&either));
        if !is_either || is_said {
            return;
        }
        if schema.contains_key("anyOf") {
            let all = schema.entry("allOf").or_insert_with(|| json!([]));
            if let Value::Array(all) = all {
                all.insert(0, json!({"anyOf": either}));
            }
        } else {
            schema.insert("anyOf".to_owned(), either);
        }
    }

    /// Drops what Swagger 2.0 does not have, and with it the types of values that would be refused otherwise.
    fn drop_unsupported(&self, document: &mut Value) {
        let is_nullable = is_true(document, "nullable");
        let is_open = is_true(document, PRESERVE);
        let Value::Object(schema) = document else {
            return;
        };
        for name in JUNCTORS.into_iter().chain(["default"]) {
            schema.remove(name);
        }
        if is_nullable {
            schema.remove("type");
            schema.remove("nullable");
        }
        if is_nullable || is_open {
            schema.remove("items");
            schema.remove("properties");
        }
        let json_type = schema.get("type").and_then(Value::as_str);
        let has_items = schema.contains_key("items");
        if (json_type == Some("array") && !has_items) || (json_type == Some("object") && is_open) {
            schema.remove("type");
        }
        drop_nullable_required(schema);
        for part in parts(schema) {
            self.drop_unsupported(part);
        }
    }
}

/// Makes nullable fields optional: clients take a null for an absent field.
fn drop_nullable_required(schema: &mut Map<String, Value>) {
    let values = schema.get("additionalProperties");
    if values.is_some_and(|values| is_true(values, "nullable")) {
        schema.remove("required");
        return;
    }
    let Some(Value::Array(mut required)) = schema.remove("required") else {
        return;
    };
    let is_nullable = |name: &Value| {
        let properties = schema.get("properties");
        let field = properties.and_then(|fields| fields.get(name.as_str()?));
        field.is_some_and(|field| is_true(field, "nullable"))
    };
    required.retain(|name| !is_nullable(name));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
}
