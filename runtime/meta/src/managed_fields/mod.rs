//! Who owns which fields of an object: `metadata.managedFields`, and what server-side apply does with documents
//! (KEP-555).
//!
//! Ownership follows the schema: structs and maps are owned by field, lists of type map or set by item, everything else
//! as one value. The functions here compare, merge and prune documents of one version; the server converts them between
//! versions and decides who wins.
//!
//! # As text
//!
//! In a document in memory `metadata.managedFields` is a string with its JSON, as the encoder writes it
//! (`meta/managed_fields/entry_text.rs`): a tree of maps, one for each field, needs far more memory, and time for each copy. The
//! decoder makes these strings of the server's own JSON (`Decoder::encoded`, `Encoder::pack_managed_fields`) and refuses those of clients; of a body only each `fieldsV1` becomes a
//! string (`meta/codec/json_text.rs`) until the write has recorded its owners. The encoder copies both; the places are marked in
//! the schema of ObjectMeta, and known without it (`Decoder::stored`, `Object::into_tree`). A patch works on a tree if it
//! may touch managedFields, else on a document without them. An entry becomes a set only if a pass over its JSON
//! (`meta/managed_fields/scan.rs`) cannot tell that a write leaves it as it is, and text again if it lost or won fields.

mod changes;
mod check;
mod entries;
mod entry_text;
mod extract;
mod field_set;
mod fields_json;
mod items;
pub(crate) mod limits;
mod merge;
mod ownership;
mod path_element;
mod present;
mod reconcile;
mod remove;
mod scan;
mod shape;

pub use changes::FieldChanges;
pub use entries::{MAX_UPDATE_ENTRIES, ManagedEntry, ManagedFields, Manager, Operation};
pub(crate) use entry_text::{EntryText, entry_texts};
pub use extract::MissingFields;
pub use field_set::FieldSet;
pub use fields_json::FieldsError;
pub use ownership::Ownership;
pub use path_element::{PathElement, PathElementError};

/// Fields of the metadata without an owner, besides `apiVersion`, `kind` and `metadata` itself.
const SYSTEM_METADATA: [&str; 9] = [
    "clusterName",
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

impl FieldSet {
    /// Removes the fields that have no owner: the type, and the metadata that the server sets.
    #[must_use]
    pub fn without_system_fields(mut self) -> Self {
        for name in ["apiVersion", "kind"] {
            self.remove(name, |_| {});
        }
        self.remove("metadata", |metadata| {
            for name in SYSTEM_METADATA {
                metadata.remove(name, |_| {});
            }
        });
        self
    }
}

#[cfg(test)]
mod tests;
