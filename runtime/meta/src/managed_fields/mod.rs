//! Who owns which fields of an object: `metadata.managedFields`, and what server-side apply does with documents
//! (KEP-555).
//!
//! Ownership follows the schema: structs and maps are owned by field, lists of type map or set by item, everything else
//! as one value. The functions here compare, merge and prune documents of one version; the server converts them between
//! versions and decides who wins.

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
