//! `ObjectMeta`, `ListMeta` and their parts.
//!
//! Fields are in the order in which the API prints them; `x-apiloom-order` repeats it for the encoder, whose documents
//! have sorted keys.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::types::{FieldsV1, SortedMap, Time};

/// ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-apiloom-order" = [
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
    "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers", "managedFields"
]))]
pub struct ObjectMeta {
    /// Unique within a namespace (or the server, for cluster-scoped kinds). Cannot be updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Prefix for a server-generated name, used only when `name` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_name: Option<String>,
    /// The namespace of a namespaced object. Cannot be updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Legacy, never set by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_link: Option<String>,
    /// Unique in time and space, set by the server on creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Opaque version of this object, for optimistic concurrency and watches. Set by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Sequence number of the desired state. Set by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// When the object was created, in UTC with second precision. Set by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// When the object will be (or was asked to be) deleted. Set by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// Seconds a graceful deletion may take. Set by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Keys and values to organize and select objects by.
    #[serde(skip_serializing_if = "SortedMap::is_empty")]
    pub labels: SortedMap<String, String>,
    /// Unstructured keys and values of external tools.
    #[serde(skip_serializing_if = "SortedMap::is_empty")]
    pub annotations: SortedMap<String, String>,
    /// Objects this object depends on; it is garbage collected when all of them are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["uid"],
        "x-kubernetes-patch-strategy" = "merge",
        "x-kubernetes-patch-merge-key" = "uid"
    ))]
    pub owner_references: Vec<OwnerReference>,
    /// Must be empty before the object is removed from storage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set", "x-kubernetes-patch-strategy" = "merge"))]
    pub finalizers: Vec<String>,
    /// Which manager set which fields.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "managed_fields"
    )]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub managed_fields: Vec<ManagedFieldsEntry>,
}

/// Reads managedFields from an array, or from the text of one, as the documents of [`Object`](crate::Object) have it.
fn managed_fields<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<ManagedFieldsEntry>, D::Error> {
    deserializer.deserialize_any(EntriesVisitor)
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Vec<ManagedFieldsEntry>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_str<E: de::Error>(self, json: &str) -> Result<Self::Value, E> {
        let entries: Vec<EntryText<'_>> = serde_json::from_str(json).map_err(E::custom)?;
        Ok(entries.into_iter().map(Into::into).collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(access))
    }
}

/// An entry in the text, whose fields stay as they are.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EntryText<'a> {
    manager: Option<String>,
    operation: Option<String>,
    api_version: Option<String>,
    time: Option<Time>,
    fields_type: Option<String>,
    #[serde(rename = "fieldsV1", borrow)]
    fields_v1: Option<&'a RawValue>,
    subresource: Option<String>,
}

impl From<EntryText<'_>> for ManagedFieldsEntry {
    fn from(entry: EntryText<'_>) -> Self {
        let fields = |json: &RawValue| FieldsV1::new(json.get().to_owned());
        Self {
            manager: entry.manager,
            operation: entry.operation,
            api_version: entry.api_version,
            time: entry.time,
            fields_type: entry.fields_type,
            fields_v1: entry.fields_v1.map(fields),
            subresource: entry.subresource,
        }
    }
}

/// OwnerReference names an owning object in the same namespace, or a cluster-scoped one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend(
    "x-kubernetes-map-type" = "atomic",
    "x-apiloom-order" = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"]
))]
pub struct OwnerReference {
    /// API version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    /// Whether the owner is the managing controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether foreground deletion of the owner waits for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// Marks the owner as the managing controller, whose foreground deletion waits for this object.
    #[must_use]
    pub fn as_controller(mut self) -> Self {
        self.controller = Some(true);
        self.block_owner_deletion = Some(true);
        self
    }
}

/// ManagedFieldsEntry says which fields one manager set by one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-apiloom-order" = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"]))]
pub struct ManagedFieldsEntry {
    /// Name of the manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
    /// `Apply` or `Update`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The version that `fieldsV1` is spelled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// When the entry was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// Always `FieldsV1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields_type: Option<String>,
    /// The fields, as a trie of `f:`, `k:` and `v:` keys.
    #[serde(rename = "fieldsV1", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub fields_v1: Option<FieldsV1>,
    /// The subresource the fields were set through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
}

/// The schema of an object with any fields, all of which are kept.
fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// ListMeta is the metadata of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-apiloom-order" = ["selfLink", "resourceVersion", "continue", "remainingItemCount"]))]
pub struct ListMeta {
    /// Legacy, never set by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_link: Option<String>,
    /// The state the list shows; a watch from it misses nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Token for the next page.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continue_token: Option<String>,
    /// How many items remain after this page, when that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
}

#[cfg(test)]
mod tests;
