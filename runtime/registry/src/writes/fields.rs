//! Which fields of an object the path of a request writes.

use apiloom_meta::kind::Writes;
use apiloom_meta::{Object, ResourceDef};

use super::managed;

/// Whether the path of a request for a version writes a field of the object's root.
pub(crate) fn is_written(def: &ResourceDef, subresource: &str, field: &str) -> bool {
    let own = def.subresource(subresource).map(|sub| &sub.writes);
    match own {
        Some(Writes::Nothing) => false,
        Some(Writes::Only(only)) => field == only.as_str(),
        Some(Writes::WithMetadata(own)) => field == own.as_str() || field == "metadata",
        Some(Writes::Also(_) | Writes::Replicas(_)) | None => {
            let own = own.and_then(Writes::field);
            let mut fields = def.subresources.iter().filter_map(|sub| sub.writes.field());
            own == Some(field) || fields.all(|other| other != field)
        }
    }
}

/// Restores the fields that the path of the request does not write: those of the other subresources and, for a
/// subresource that writes only one field, all others but managedFields, or but the metadata.
pub(crate) fn restore_unwritten(
    def: &ResourceDef,
    subresource: &str,
    new: &mut Object,
    old: &Object,
) {
    let writes = def.subresource(subresource).map(|sub| &sub.writes);
    match writes {
        Some(Writes::Nothing) => {
            let replaced = std::mem::replace(new, old.clone());
            managed::copy_managed(new, &replaced);
        }
        Some(Writes::Only(field)) => {
            let value = new.fields_mut().remove(field.as_str());
            let replaced = std::mem::replace(new, old.clone());
            new.set_field(field, value);
            managed::copy_managed(new, &replaced);
        }
        Some(Writes::WithMetadata(field)) => {
            let written = [field.as_str(), "metadata"];
            let values = written.map(|field| new.fields_mut().remove(field));
            *new = old.clone();
            for (field, value) in written.into_iter().zip(values) {
                new.set_field(field, value);
            }
        }
        // The new object is the present one with other replicas.
        Some(Writes::Replicas(_)) => {}
        Some(Writes::Also(_)) | None => {
            let fields = def.subresources.iter().filter_map(|sub| sub.writes.field());
            for field in fields.filter(|field| !is_written(def, subresource, field)) {
                new.set_field(field, old.fields().get(field).cloned());
            }
        }
    }
}

/// Whether any field differs besides metadata and the fields of subresources.
pub(crate) fn spec_differs(def: &ResourceDef, new: &Object, old: &Object) -> bool {
    let counts = |name: &&String| {
        *name != "metadata" && !def.fields_of_subresources().any(|own| own == *name)
    };
    let (new, old) = (new.fields(), old.fields());
    new.keys().filter(counts).count() != old.keys().filter(counts).count()
        || new
            .iter()
            .any(|(name, value)| counts(&name) && old.get(name) != Some(value))
}
