//! The fields that every object has: `kind`, `apiVersion` and `metadata`.

use serde_json::Value;

use super::build::{Builder, Source};
use super::node::{Node, Property, Types};
use crate::types::ObjectMeta;

/// The type name by which printers recognize the metadata of an object.
pub(crate) const OBJECT_META_NAME: &str = "ObjectMeta";

/// The schema of a Rust type as schemars gives it.
pub(crate) fn schema_of<T: schemars::JsonSchema>() -> Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

/// The schema of `metadata`. What its fields must hold is checked by `validation`, which all kinds share; here are
/// types, order and topology.
fn object_meta() -> Node {
    let schema = schema_of::<ObjectMeta>();
    let mut builder = Builder::new(&schema, Source::Types);
    let mut meta = builder.node(&schema, "metadata");
    debug_assert!(
        builder.problems.lines.is_empty(),
        "the meta types are structural: {:?}",
        builder.problems.lines
    );
    meta.title = None;
    meta.type_name = Some(OBJECT_META_NAME.to_owned());
    meta.description = Some("The metadata that every object has.".to_owned());
    // Kubernetes merges owners by uid and finalizers as a set, but refuses no twins there.
    for name in ["ownerReferences", "finalizers"] {
        if let Some(property) = meta.property_mut(name) {
            property.node.twins_allowed = true;
        }
    }
    meta
}

/// Makes a node the schema of an object: `kind`, `apiVersion` and `metadata` come first, as the encoder prints them.
pub(crate) fn add_type_and_metadata(node: &mut Node) {
    node.properties
        .retain(|property| !matches!(property.name.as_str(), "kind" | "apiVersion" | "metadata"));
    let string = |description: &str| Node {
        description: Some(description.to_owned()),
        ..Node::of(Types::STRING)
    };
    let first = [
        (
            "kind",
            string("Kind is the REST resource this object represents, in CamelCase."),
        ),
        (
            "apiVersion",
            string("APIVersion is the group and version of this representation of the object."),
        ),
        ("metadata", object_meta()),
    ];
    let first = first.into_iter().map(|(name, node)| Property {
        name: name.to_owned(),
        required: false,
        node,
    });
    node.properties.splice(0..0, first);
}
