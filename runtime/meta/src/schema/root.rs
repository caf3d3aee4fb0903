//! The fields that every object has: `kind`, `apiVersion` and `metadata`.

use serde_json::Value;

use super::build::{Builder, Source};
use super::node::{ListType, Node, Property, Types};
use crate::types::{ManagedFieldsEntry, ObjectMeta, OwnerReference};

/// The fields of ObjectMeta as Kubernetes declares them, which is the order of its JSON.
const OBJECT_META: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
const OWNER_REFERENCE: [&str; 6] = [
    "apiVersion",
    "kind",
    "name",
    "uid",
    "controller",
    "blockOwnerDeletion",
];
const MANAGED_FIELDS: [&str; 7] = [
    "manager",
    "operation",
    "apiVersion",
    "time",
    "fieldsType",
    "fieldsV1",
    "subresource",
];

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
    let mut meta = plain::<ObjectMeta>(&OBJECT_META);
    meta.type_name = Some(OBJECT_META_NAME.to_owned());
    meta.description = Some("The metadata that every object has.".to_owned());
    // Kubernetes merges owners by uid and finalizers as a set, but refuses no twins there.
    if let Some(owners) = meta.property_mut("ownerReferences") {
        owners.node.items = Some(Box::new(plain::<OwnerReference>(&OWNER_REFERENCE)));
        owners.node.list_type = Some(ListType::Map(vec!["uid".to_owned()]));
        owners.node.twins_allowed = true;
    }
    if let Some(finalizers) = meta.property_mut("finalizers") {
        finalizers.node.list_type = Some(ListType::Set);
        finalizers.node.twins_allowed = true;
    }
    if let Some(entries) = meta.property_mut("managedFields") {
        entries.node.items = Some(Box::new(plain::<ManagedFieldsEntry>(&MANAGED_FIELDS)));
        entries.node.list_type = Some(ListType::Atomic);
    }
    meta
}

/// A meta type with its fields in this order.
fn plain<T: schemars::JsonSchema>(order: &[&str]) -> Node {
    let schema = schema_of::<T>();
    let mut builder = Builder::new(&schema, Source::Types);
    let mut node = builder.node(&schema, "metadata");
    debug_assert!(
        builder.errors.is_empty(),
        "the meta types are structural: {:?}",
        builder.errors
    );
    node.type_name = node.title.take();
    let place = |name: &str| order.iter().position(|n| *n == name).unwrap_or(order.len());
    node.properties
        .sort_by_key(|property| place(&property.name));
    node
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
