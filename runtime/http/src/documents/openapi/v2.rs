//! The OpenAPI 2.0 (Swagger) document, whose parts are converted from 3.0; constructs that 2.0 does not support are dropped.

use apiloom_meta::ResourceDef;
use apiloom_meta::kind::Publication;
use apiloom_meta::schema::Metadata;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::content::{Content, Conversion};
use super::kind_source::KindSource;
use super::{components, names, v3};
use crate::documents::references::{DEFINITIONS, SCHEMAS};
use crate::shape::texts::Texts;

/// A document. The fields are in the order of their names, as those of all JSON of this server.
#[derive(Serialize)]
pub(crate) struct Document {
    pub(super) definitions: Texts,
    pub(super) info: Value,
    pub(super) paths: Texts,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) security: Option<Value>,
    #[serde(
        rename = "securityDefinitions",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) security_definitions: Option<Value>,
    pub(super) swagger: Value,
}

/// The document of all kinds, with the discovery of these versions.
pub(super) fn document<'a>(
    versions: &[(&'a str, &'a str)],
    kinds: impl Iterator<Item = &'a KindSource>,
) -> Document {
    let mut content = Content::new(Conversion { path_item, schema });
    for (group, version) in versions {
        content.add_discovery(group, version);
    }
    for kind in kinds {
        let def = &*kind.def;
        if def.dialect.openapi == Publication::Program {
            content.add_kind(def, kind.schema());
            continue;
        }
        // The schema of a custom resource is that of its definition as 2.0 can tell it, which is less than what a conversion of that of
        // 3.0 would say.
        content.add_kind(def, Value::Null);
        let mut schema = (kind.in_v2)(&Metadata::Ref(names::OBJECT_META_V2));
        components::add_kind(&mut schema, def);
        content.replace_schema(def, &schema);
    }
    let (paths, definitions) = content.finish();
    let has_tokens = !versions.is_empty();
    Document {
        definitions,
        info: v3::info(),
        paths,
        security: has_tokens.then(v3::security),
        security_definitions: has_tokens.then(v3::token),
        swagger: "2.0".into(),
    }
}

fn path_item(item: Value, def: Option<&ResourceDef>) -> Value {
    let Value::Object(item) = item else {
        return item;
    };
    let custom = def.filter(|def| def.dialect.openapi == Publication::Definition);
    let convert = |(key, value): (String, Value)| match key.as_str() {
        "parameters" => (key, parameters(value)),
        _ => (key, with_formats(operation(value), custom)),
    };
    item.into_iter().map(convert).collect::<Map<_, _>>().into()
}

/// Adds the formats that a custom resource takes to an operation that names the kind itself, as also those of its subresources do.
fn with_formats(mut operation: Value, custom: Option<&ResourceDef>) -> Value {
    let kind = custom.map(|def| names::gvk(&def.group, &def.version, &def.kind));
    if let Some(kind) = kind
        && let Value::Object(operation) = &mut operation
        && operation.get("x-kubernetes-group-version-kind") == Some(&kind)
        && !operation.contains_key("consumes")
    {
        let produces = operation.get("produces").cloned().unwrap_or_default();
        operation.insert("consumes".to_owned(), produces);
    }
    operation
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
        object.insert("$ref".into(), target.replace(SCHEMAS, DEFINITIONS).into());
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
