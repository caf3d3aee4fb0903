//! The OpenAPI 2.0 (Swagger) document, converted from 3.0; constructs that 2.0 does not support are dropped.

use std::collections::HashSet;

use apiloom_meta::ResourceDef;
use serde_json::{Map, Value, json};

use super::components;

/// Converts an OpenAPI 3.0 document of this server to 2.0.
pub(super) fn from_v3(mut document: Value) -> Value {
    let mut take = |path: &str| {
        document
            .pointer_mut(path)
            .map(Value::take)
            .unwrap_or_default()
    };
    let (paths, schemas, tokens) = (
        take("/paths"),
        take("/components/schemas"),
        take("/components/securitySchemes"),
    );
    let (info, security) = (take("/info"), take("/security"));
    let mut document = json!({
        "swagger": "2.0",
        "info": info,
        "paths": map_values(paths, path_item),
        "definitions": map_values(schemas, schema),
    });
    if !security.is_null() {
        document["securityDefinitions"] = tokens;
        document["security"] = security;
    }
    document
}

/// Puts the schema of a custom resource into a document. It is that of its definition as 2.0 can tell it, which is less than what a
/// conversion of that of 3.0 would say.
pub(super) fn add_custom(document: &mut Value, def: &ResourceDef, mut schema: Value) {
    components::add_kind(&mut schema, def);
    document["definitions"][components::name(def)] = schema;
}

/// Adds the formats that custom resources take to all their operations. Operations of these name the kind itself, also those of
/// subresources.
pub(super) fn add_formats(document: &mut Value, customs: &HashSet<[&str; 3]>) {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for operation in paths.flat_map(|(_, item)| item.as_object_mut().into_iter().flatten()) {
        let (_, Value::Object(operation)) = operation else {
            continue;
        };
        let kind = operation.get("x-kubernetes-group-version-kind");
        let part = |name: &str| kind?.get(name)?.as_str();
        let kind = [part("group"), part("version"), part("kind")].map(Option::unwrap_or_default);
        if customs.contains(&kind) && !operation.contains_key("consumes") {
            let produces = operation["produces"].clone();
            operation.insert("consumes".to_owned(), produces);
        }
    }
}

fn path_item(item: Value) -> Value {
    let Value::Object(item) = item else {
        return item;
    };
    let convert = |(key, value): (String, Value)| match key.as_str() {
        "parameters" => (key, parameters(value)),
        _ => (key, operation(value)),
    };
    item.into_iter().map(convert).collect::<Map<_, _>>().into()
}

fn operation(operation: Value) -> Value {
    let Value::Object(mut operation) = operation else {
        return operation;
    };
    let mut all = match operation.remove("parameters").map(parameters) {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    if let Some(mut body) = operation.remove("requestBody") {
        let (formats, content) = content(body["content"].take());
        let mut parameter = json!({ "in": "body", "name": "body", "schema": content });
        if body["required"] == true {
            parameter["required"] = true.into();
        }
        all.insert(0, parameter);
        operation.insert("consumes".into(), formats.into());
    }
    let mut produces = Vec::new();
    let responses = operation.remove("responses").unwrap_or_default();
    let responses = map_values(responses, |mut response| {
        if response.get("content").is_some() {
            let (formats, content) = content(response["content"].take());
            produces = formats;
            response["schema"] = content;
            response
                .as_object_mut()
                .map(|response| response.remove("content"));
        }
        response
    });
    operation.insert("responses".into(), responses);
    operation.insert("produces".into(), produces.into());
    operation.insert("schemes".into(), json!(["https"]));
    if !all.is_empty() {
        operation.insert("parameters".into(), all.into());
    }
    operation.into()
}

/// In 2.0 a parameter has its type inline, not in a schema.
fn parameters(parameters: Value) -> Value {
    let Value::Array(all) = parameters else {
        return parameters;
    };
    let convert = |parameter: Value| {
        let Value::Object(mut parameter) = parameter else {
            return parameter;
        };
        if let Some(Value::Object(schema)) = parameter.remove("schema") {
            parameter.extend(schema);
        }
        parameter.into()
    };
    all.into_iter().map(convert).collect()
}

/// The media types of a `content`, and their common schema.
fn content(content: Value) -> (Vec<String>, Value) {
    let Value::Object(content) = content else {
        return (Vec::new(), Value::Null);
    };
    let formats = content.keys().cloned().collect();
    let first = content
        .into_iter()
        .next()
        .map(|(_, mut format)| format["schema"].take());
    (formats, schema(first.unwrap_or_default()))
}

/// Converts a schema. 2.0 has no alternatives and no `nullable`, so their schemas become unrestricted; as in kube-apiserver it tells
/// no defaults.
fn schema(value: Value) -> Value {
    let Value::Object(mut object) = value else {
        return value;
    };
    if let Some(target) = reference(&object) {
        object.remove("allOf");
        object.insert(
            "$ref".into(),
            target
                .replace("#/components/schemas/", "#/definitions/")
                .into(),
        );
    }
    for name in ["allOf", "anyOf", "oneOf", "not", "default"] {
        object.remove(name);
    }
    let nullable = object.remove("nullable") == Some(Value::Bool(true));
    let open = object.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if nullable {
        object.remove("type");
    }
    if nullable || open {
        for key in ["properties", "items", "required"] {
            object.remove(key);
        }
    }
    for (key, value) in &mut object {
        match key.as_str() {
            "properties" => *value = map_values(value.take(), schema),
            "items" | "additionalProperties" => *value = schema(value.take()),
            _ => {}
        }
    }
    object.into()
}

/// The target of a reference, with or without the wrapper for a description.
fn reference(object: &Map<String, Value>) -> Option<String> {
    let wrapped = object
        .get("allOf")
        .and_then(Value::as_array)
        .filter(|all| all.len() == 1)
        .and_then(|all| all[0].get("$ref"));
    object.get("$ref").or(wrapped)?.as_str().map(str::to_owned)
}

fn map_values(value: Value, mut convert: impl FnMut(Value) -> Value) -> Value {
    let Value::Object(object) = value else {
        return value;
    };
    object
        .into_iter()
        .map(|(key, value)| (key, convert(value)))
        .collect::<Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::schema;

    #[test]
    fn a_schema_has_no_defaults_and_a_part_that_keeps_all_fields_no_structure() {
        let part = json!({"type": "object", "properties": {
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {}},
            "default": {"type": "string", "default": "a"},
        }});
        assert_eq!(
            schema(part),
            json!({"type": "object", "properties": {
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "default": {"type": "string"},
            }})
        );
    }
}
