//! Validation of the metadata of all objects (`ValidateObjectMeta`, `ValidateObjectMetaUpdate`).
//!
//! Works on the type-erased object. The schema has refused values of the wrong type before, so they count as absent
//! here.

#[cfg(feature = "schema")]
mod embedded;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::field::{FieldError, FieldPath, go_quote, is_printable};
use crate::gvk::GroupVersion;
use crate::kind::{NameFormat, Scope};
use crate::labels::{MAX_ERRORS, complaints};
use crate::managed_fields::limits::{SUBRESOURCE_MAX_BYTES, is_field_manager};
use crate::managed_fields::{EntryText, ManagedFields, entry_texts};
use crate::names;
use crate::object::Object;
use crate::types::{OwnerReference, Time};

#[cfg(feature = "schema")]
pub use self::embedded::embedded_errors;
pub use crate::labels::label_errors;
pub use crate::managed_fields::limits::FIELD_MANAGER_MAX_BYTES;

/// Maximum size of the keys and values of all annotations, in bytes.
pub const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

const ORPHAN: &str = "orphan";
const FOREGROUND_DELETION: &str = "foregroundDeletion";
/// Finalizers without a domain prefix.
const STANDARD_FINALIZERS: [&str; 4] = [
    "kubernetes",
    ORPHAN,
    FOREGROUND_DELETION,
    // Of the definitions of custom resources.
    "customresourcecleanup.apiextensions.k8s.io",
];

const IMMUTABLE: &str = "field is immutable";

/// Validates the metadata of an object on create: name, namespace, labels, annotations, owners, finalizers. Whether finalizers
/// need a domain is checked apart, by [`unqualified_finalizer_errors`].
///
/// A generated name and the namespace must have been set before.
pub fn validate_create(object: &Object, scope: Scope, format: NameFormat) -> Vec<FieldError> {
    let root = FieldPath::new("metadata");
    let mut errors = name_errors(object, format, &root);
    errors.extend(namespace_errors(
        object.namespace(),
        scope,
        &root.child("namespace"),
    ));
    let generation = number(object, "generation");
    if generation < 0 {
        errors.push(FieldError::invalid(
            &root.child("generation"),
            generation,
            "must be greater than or equal to 0",
        ));
    }
    errors.extend(common_errors(object, &root, finalizer_errors));
    errors
}

/// Validates the metadata of an object on update: immutable fields, finalizers of an object marked for deletion, and
/// labels, annotations and owners as on create. kube-apiserver validates an updated object as a new one too, see [`validate_create`].
///
/// The registry must have copied the fields that a client may omit (`uid`, `creationTimestamp`, `generation`,
/// `deletionTimestamp`, `deletionGracePeriodSeconds`, `namespace`). It also checks the resourceVersion, which is
/// ignored here.
pub fn validate_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let root = FieldPath::new("metadata");
    let mut errors = Vec::new();
    if old.is_deleting() {
        errors.extend(new_finalizers_error(new, old, &root.child("finalizers")));
    }
    let generation = number(new, "generation");
    if generation < number(old, "generation") {
        errors.push(FieldError::invalid(
            &root.child("generation"),
            generation,
            "must not be decremented",
        ));
    }
    for field in ["name", "namespace", "uid"] {
        if new.meta_str(field) != old.meta_str(field) {
            errors.push(FieldError::invalid(
                &root.child(field),
                new.meta_str(field),
                IMMUTABLE,
            ));
        }
    }
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let (value, before) = (meta_value(new, field), meta_value(old, field));
        if !same_value(value, before) {
            errors.push(FieldError::invalid(&root.child(field), value, IMMUTABLE));
        }
    }
    errors.extend(common_errors(new, &root, |_, _| Vec::new()));
    errors
}

/// The problems of a name, or with `prefix` those of a generateName.
pub fn name_complaints(name: &str, format: NameFormat, prefix: bool) -> Vec<String> {
    match format {
        NameFormat::DnsSubdomain => names::dns_subdomain(&complete(name, prefix)),
        NameFormat::DnsLabel => names::dns_label(&complete(name, prefix)),
        NameFormat::PathSegment if prefix => names::path_segment_prefix(name),
        NameFormat::PathSegment => names::path_segment(name),
    }
}

/// A generateName may end in a dash, after which the suffix follows. A letter replaces the dash and the character
/// before it, since there any character is allowed that is allowed within a name.
fn complete(name: &str, prefix: bool) -> Cow<'_, str> {
    let mut before = name.strip_suffix('-').unwrap_or_default().chars();
    match before.next_back() {
        Some(last) if prefix && last.is_ascii() => Cow::Owned(format!("{}a", before.as_str())),
        _ => Cow::Borrowed(name),
    }
}

fn name_errors(object: &Object, format: NameFormat, root: &FieldPath) -> Vec<FieldError> {
    let (prefix, name) = (object.meta_str("generateName"), object.name());
    let mut errors = Vec::new();
    if !prefix.is_empty() {
        let found = name_complaints(prefix, format, true);
        errors.extend(complaints(&root.child("generateName"), prefix, &found));
    }
    let path = root.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(
            &path,
            "name or generateName is required",
        ));
    } else {
        errors.extend(complaints(
            &path,
            name,
            &name_complaints(name, format, false),
        ));
    }
    errors
}

fn namespace_errors(namespace: &str, scope: Scope, path: &FieldPath) -> Vec<FieldError> {
    match (scope, namespace) {
        (Scope::Namespaced, "") => vec![FieldError::required(path, "")],
        (Scope::Namespaced, name) => complaints(path, name, &names::dns_label(name)),
        (Scope::Cluster, "") => Vec::new(),
        (Scope::Cluster, _) => vec![FieldError::forbidden(path, "not allowed on this type")],
    }
}

/// Checks for both create and update. That of an update does not validate the format of finalizers.
fn common_errors(
    object: &Object,
    root: &FieldPath,
    finalizers: fn(&[&str], &FieldPath) -> Vec<FieldError>,
) -> Vec<FieldError> {
    let names = object.finalizers();
    let path = root.child("finalizers");
    let mut errors = label_errors(strings(object, "labels"), &root.child("labels"));
    let annotations: Vec<_> = strings(object, "annotations").collect();
    errors.extend(annotation_errors(&annotations, &root.child("annotations")));
    errors.extend(owner_errors(
        &owners(object),
        &root.child("ownerReferences"),
    ));
    errors.extend(finalizers(&names, &path));
    errors.extend(managed_fields_errors(object, &root.child("managedFields")));
    errors
}

/// The errors of finalizers without a domain, beside those of Kubernetes itself. An object of a custom resource may have
/// them: its clients are warned, see [`finalizer_warnings`].
pub fn unqualified_finalizer_errors(object: &Object) -> Vec<FieldError> {
    let path = FieldPath::new("metadata").child("finalizers");
    let detail = "name is neither a standard finalizer name nor is it fully qualified";
    let names = object.finalizers().into_iter().enumerate();
    names
        .filter(|(_, name)| is_unqualified(name))
        .take(MAX_ERRORS)
        .map(|(i, name)| FieldError::invalid(&path.index(i), name, detail))
        .collect()
}

/// The warnings of kube-apiserver for finalizers that a write adds to an object of a custom resource: those that are no
/// qualified names or have no domain, sorted by name.
pub fn finalizer_warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let present = old.map(Object::finalizers).unwrap_or_default();
    let names: BTreeSet<&str> = new.finalizers().into_iter().collect();
    let mut warnings = Vec::new();
    for name in names.into_iter().filter(|name| !present.contains(name)) {
        let shown = go_quote(name);
        let problems = names::qualified_name(name).into_iter();
        warnings.extend(problems.map(|why| format!("metadata.finalizers: {shown}: {why}")));
        if is_unqualified(name) {
            // A name with a dot has a domain already.
            let path = if name.contains('.') {
                " including a path (/)"
            } else {
                ""
            };
            warnings.push(format!(
                "metadata.finalizers: {shown}: prefer a domain-qualified finalizer name{path} to avoid accidental \
                 conflicts with other finalizer writers"
            ));
        }
    }
    warnings
}

fn is_unqualified(finalizer: &str) -> bool {
    !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer)
}

/// Validates annotations: their keys, and the size of all together. Returns at most the first hundred errors of keys.
pub fn annotation_errors(annotations: &[(&str, &str)], path: &FieldPath) -> Vec<FieldError> {
    // The case of an annotation's key does not matter, even in its domain.
    let keys = annotations
        .iter()
        .flat_map(|(key, _)| complaints(path, key, &names::label_key(&key.to_lowercase())));
    let mut errors: Vec<FieldError> = keys.take(MAX_ERRORS).collect();
    let bytes: usize = annotations
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if bytes > ANNOTATIONS_MAX_BYTES {
        errors.push(FieldError::too_long(path, ANNOTATIONS_MAX_BYTES));
    }
    errors
}

fn owner_errors(owners: &[OwnerReference], path: &FieldPath) -> Vec<FieldError> {
    let broken = owners
        .iter()
        .flat_map(|owner| one_owner_errors(owner, path));
    let mut errors: Vec<FieldError> = broken.take(MAX_ERRORS).collect();
    let mut controllers = owners.iter().filter(|owner| owner.controller == Some(true));
    if let (Some(first), Some(second)) = (controllers.next(), controllers.next()) {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
            first.kind, first.name, second.kind, second.name
        );
        errors.push(FieldError::invalid(path, owners, &detail));
    }
    errors
}

fn one_owner_errors(owner: &OwnerReference, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let version = GroupVersion::parse(&owner.api_version)
        .map(|gv| gv.version)
        .unwrap_or_default();
    if version.is_empty() {
        let path = path.child("apiVersion");
        errors.push(FieldError::invalid(
            &path,
            &owner.api_version,
            "version must not be empty",
        ));
    }
    for (field, value) in [
        ("kind", &owner.kind),
        ("name", &owner.name),
        ("uid", &owner.uid),
    ] {
        if value.is_empty() {
            errors.push(FieldError::invalid(
                &path.child(field),
                value,
                "must not be empty",
            ));
        }
    }
    if owner.api_version == "v1" && owner.kind == "Event" {
        errors.push(FieldError::invalid(
            path,
            owner,
            "/v1, Kind=Event is disallowed from being an owner",
        ));
    }
    errors
}

fn finalizer_errors(finalizers: &[&str], path: &FieldPath) -> Vec<FieldError> {
    let names = finalizers
        .iter()
        .flat_map(|name| complaints(path, name, &names::qualified_name(name)));
    let mut errors: Vec<FieldError> = names.take(MAX_ERRORS).collect();
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND_DELETION) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND_DELETION} cannot be both set");
        errors.push(FieldError::invalid(path, finalizers, &detail));
    }
    errors
}

fn new_finalizers_error(new: &Object, old: &Object, path: &FieldPath) -> Option<FieldError> {
    let old: BTreeSet<&str> = old.finalizers().into_iter().collect();
    let new: BTreeSet<&str> = new.finalizers().into_iter().collect();
    let added: Vec<&&str> = new.difference(&old).collect();
    let quoted: Vec<String> = added.iter().map(|name| go_quote(name)).collect();
    let rule =
        "no new finalizers can be added if the object is being deleted, found new finalizers";
    (!added.is_empty())
        .then(|| FieldError::forbidden(path, &format!("{rule} []string{{{}}}", quoted.join(", "))))
}

fn managed_fields_errors(object: &Object, path: &FieldPath) -> Vec<FieldError> {
    // [`ManagedFields::write`] writes a text only of entries that are valid.
    let entries = ManagedFields::value(object).filter(|entries| !entries.is_string());
    let entries = entries.map(entry_texts);
    let errors = entries
        .and_then(Result::ok)
        .unwrap_or_default()
        .into_iter()
        .enumerate()
        .flat_map(|(i, entry)| managed_entry_errors(&entry, |field| path.index(i).child(field)));
    errors.take(MAX_ERRORS).collect()
}

fn managed_entry_errors(
    entry: &EntryText<'_>,
    path: impl Fn(&str) -> FieldPath,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (operation, fields_type) = (&*entry.operation, &*entry.fields_type);
    if !matches!(operation, "Apply" | "Update") {
        errors.push(FieldError::invalid(
            &path("operation"),
            operation,
            "must be `Apply` or `Update`",
        ));
    }
    if !matches!(fields_type, "" | "FieldsV1") {
        errors.push(FieldError::invalid(
            &path("fieldsType"),
            fields_type,
            "must be `FieldsV1`",
        ));
    }
    let manager = &*entry.manager;
    if !is_field_manager(manager) {
        errors.extend(field_manager_errors(manager, &path("manager")));
    }
    if entry.subresource.len() > SUBRESOURCE_MAX_BYTES {
        errors.push(FieldError::too_long(
            &path("subresource"),
            SUBRESOURCE_MAX_BYTES,
        ));
    }
    errors
}

/// Validates the name of a field manager: at most 128 bytes of printable characters. An empty name means absent.
pub fn field_manager_errors(manager: &str, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > FIELD_MANAGER_MAX_BYTES {
        errors.push(FieldError::too_long(path, FIELD_MANAGER_MAX_BYTES));
    }
    for (at, found) in manager.char_indices().filter(|(_, it)| !is_printable(*it)) {
        let code = u32::from(found);
        let detail = format!("invalid character U+{code:04X} (at position {at})");
        errors.push(FieldError::invalid(path, manager, &detail));
    }
    errors.truncate(MAX_ERRORS);
    errors
}

/// A field of the metadata; `null` counts as absent.
fn meta_value<'a>(object: &'a Object, field: &str) -> Option<&'a Value> {
    object.meta()?.get(field).filter(|value| !value.is_null())
}

fn number(object: &Object, field: &str) -> i64 {
    meta_value(object, field)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

fn strings<'a>(object: &'a Object, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = meta_value(object, field).and_then(Value::as_object);
    map.into_iter()
        .flat_map(Map::iter)
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

fn owners(object: &Object) -> Vec<OwnerReference> {
    let items = meta_value(object, "ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    items
        .filter_map(|item| OwnerReference::deserialize(item).ok())
        .collect()
}

/// Whether two values are equal; two representations of the same time are.
fn same_value(a: Option<&Value>, b: Option<&Value>) -> bool {
    let time = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<Time>().ok())
    };
    a == b || time(a).is_some_and(|a| Some(a) == time(b))
}

#[cfg(test)]
mod tests;
