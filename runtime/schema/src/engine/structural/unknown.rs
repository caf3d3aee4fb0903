//! The keywords by which the schema in a CustomResourceDefinition is decoded: what kube-apiserver's types do not have is unknown.

use std::sync::LazyLock;

use serde_json::Value;

use super::super::node::{Node, Property};
use super::reading::{JUNCTORS, KEYWORDS, VALIDATIONS};

/// The fields of a rule.
pub(super) const RULE_FIELDS: [&str; 6] = [
    "rule",
    "message",
    "messageExpression",
    "reason",
    "fieldPath",
    "optionalOldSelf",
];

/// The fields of `externalDocs`.
const DOCS_FIELDS: [&str; 2] = ["description", "url"];

/// The keywords whose values are schemas by names.
const BY_NAME: [&str; 3] = ["definitions", "patternProperties", "properties"];

static SCHEMA: LazyLock<Node> = LazyLock::new(|| of_fields(&KEYWORDS, keyword));

/// A schema, by its keywords. Its types are not checked by this node. Values of any type have no known fields, and neither have
/// `items`, `additionalItems`, `additionalProperties` and `dependencies`: in kube-apiserver the types of these decode themselves,
/// without strictness.
pub fn schema_node() -> &'static Node {
    &SCHEMA
}

/// The node of a keyword.
fn keyword(name: &str) -> Node {
    let inner = || Node {
        is_inner_schema: true,
        ..any()
    };
    match name {
        "not" => inner(),
        "externalDocs" => of_fields(&DOCS_FIELDS, |_| any()),
        "dependencies" => map_of(any()),
        "enum" => list_of(any()),
        VALIDATIONS => list_of(of_fields(&RULE_FIELDS, |_| any())),
        name if BY_NAME.contains(&name) => map_of(inner()),
        name if JUNCTORS.contains(&name) => list_of(inner()),
        _ => any(),
    }
}

/// A value of any type, or null.
fn any() -> Node {
    Node {
        nullable: true,
        ..Node::default()
    }
}

fn map_of(values: Node) -> Node {
    Node {
        additional: Some(Box::new(values)),
        ..any()
    }
}

fn list_of(items: Node) -> Node {
    Node {
        items: Some(Box::new(items)),
        ..any()
    }
}

fn of_fields(names: &[&str], node: impl Fn(&str) -> Node) -> Node {
    let property = |name: &&str| Property {
        name: (*name).to_owned(),
        required: false,
        node: node(name).into(),
    };
    let mut fields = Node {
        properties: names.iter().map(property).collect(),
        ..any()
    };
    fields.index();
    fields
}

/// Drops unknown keywords of a schema, also where [`schema_node`] keeps them. Items of any other type than a schema or a list are
/// none.
pub fn drop_unknown(schema: &mut Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    keywords.retain(|name, _| KEYWORDS.contains(&name.as_str()));
    for (name, value) in keywords {
        match name.as_str() {
            "items" if !value.is_object() && !value.is_array() => *value = Value::Null,
            "items" | "additionalItems" | "additionalProperties" | "not" => each_schema(value),
            "dependencies" => values(value).for_each(each_schema),
            "externalDocs" => keep_only(value, &DOCS_FIELDS),
            VALIDATIONS => values(value).for_each(|rule| keep_only(rule, &RULE_FIELDS)),
            name if BY_NAME.contains(&name) || JUNCTORS.contains(&name) => {
                values(value).for_each(drop_unknown);
            }
            _ => {}
        }
    }
}

/// Drops unknown keywords of a schema, or of a list of them.
fn each_schema(schemas: &mut Value) {
    match schemas {
        Value::Array(schemas) => schemas.iter_mut().for_each(each_schema),
        schema => drop_unknown(schema),
    }
}

/// The values in an object or a list.
fn values(value: &mut Value) -> Box<dyn Iterator<Item = &mut Value> + '_> {
    match value {
        Value::Object(fields) => Box::new(fields.values_mut()),
        Value::Array(items) => Box::new(items.iter_mut()),
        _ => Box::new(std::iter::empty()),
    }
}

fn keep_only(value: &mut Value, known: &[&str]) {
    if let Value::Object(fields) = value {
        fields.retain(|name, _| known.contains(&name.as_str()));
    }
}
