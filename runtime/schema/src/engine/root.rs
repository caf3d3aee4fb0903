//! The fields of every object: `kind`, `apiVersion` and `metadata`.

use std::sync::Arc;

use serde_json::Value;

use super::node::{Node, Property, Types};

/// The schema of a Rust type, from schemars.
pub(crate) fn schema_of<T: schemars::JsonSchema>() -> Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

/// The fields with the type of an object, and their descriptions.
pub(crate) const TYPE_FIELDS: [(&str, &str); 2] = [
    (
        "kind",
        "Kind is the REST resource this object represents, in CamelCase.",
    ),
    (
        "apiVersion",
        "APIVersion defines the group and version of this representation of the object.",
    ),
];

/// Adds the fields of every object to a node: `kind`, `apiVersion` and `metadata` come first, as in the encoder.
pub(crate) fn add_type_and_metadata(node: &mut Node, metadata: Arc<Node>) {
    node.properties
        .retain(|property| !matches!(property.name.as_str(), "kind" | "apiVersion" | "metadata"));
    let string = |description: &str| {
        Arc::new(Node {
            description: Some(description.to_owned()),
            ..Node::of(Types::STRING)
        })
    };
    let [kind, api_version] = TYPE_FIELDS.map(|(name, description)| (name, string(description)));
    let first = [kind, api_version, ("metadata", metadata)];
    let first = first.into_iter().map(|(name, node)| Property {
        name: name.to_owned(),
        required: false,
        node,
    });
    node.properties.splice(0..0, first);
}
