//! Schemas of structs with named fields, made from tables: what schemars would derive, with our keywords.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::keywords::{Keyword, apply_keywords};

/// When a field may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Never.
    Required,
    /// Always: it has a value then, and is omitted with it.
    Omitted,
    /// In what is read: it is written as null.
    Null,
}

/// A field of a struct.
#[derive(Debug)]
pub struct FieldSchema {
    /// The JSON name.
    pub name: &'static str,
    /// The documentation comment.
    pub doc: &'static str,
    /// When it may be absent.
    pub presence: Presence,
    /// The schema of its type.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// Keywords of the field beside those of its type.
    pub keywords: &'static [Keyword],
}

/// A struct.
#[derive(Debug)]
pub struct StructSchema {
    /// The documentation comment.
    pub doc: &'static str,
    /// The fields in declared order.
    pub fields: &'static [FieldSchema],
    /// Keywords of the whole value.
    pub keywords: &'static [Keyword],
}

/// The schema of a struct.
pub fn struct_schema(generator: &mut SchemaGenerator, of: &StructSchema) -> Schema {
    let mut schema = json_schema!({ "type": "object" });
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in of.fields {
        let mut property = (field.schema)(generator);
        document(&mut property, field.doc);
        if !field.keywords.is_empty() {
            apply_keywords(field.keywords, &mut property);
        }
        properties.insert(field.name.to_owned(), property.into());
        let is_optional = match field.presence {
            Presence::Required => false,
            Presence::Omitted => true,
            Presence::Null => generator.contract().is_deserialize(),
        };
        if !is_optional {
            required.push(Value::from(field.name));
        }
    }
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    document(&mut schema, of.doc);
    apply_keywords(of.keywords, &mut schema);
    schema
}

/// Adds a documentation comment; one that begins with a heading gives the title too.
fn document(schema: &mut Schema, doc: &str) {
    let doc = doc.trim_ascii();
    let (title, description) = match doc.strip_prefix('#') {
        Some(_) => doc.split_once('\n').unwrap_or((doc, "")),
        None => ("", doc),
    };
    let parts = [
        ("title", title.trim_start_matches('#').trim_ascii()),
        ("description", description.trim_ascii()),
    ];
    for (keyword, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
        schema.insert(keyword.to_owned(), Value::from(text));
    }
}
