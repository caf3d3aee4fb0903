//! What the controller keeps of a definition: not its schemas, which are large.

use apiloom_kinds::apiextensions::rules::CLEANUP;
use apiloom_kinds::apiextensions::v1::{CustomResourceDefinition, CustomResourceDefinitionNames};
use apiloom_meta::kind::{SmolStr, StoredDefinition};
use apiloom_meta::{Conditions as _, GroupResource, Time};
use serde::Deserialize;
use serde_json::Value;

/// The path of a definition.
pub(super) fn path(name: &str) -> String {
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
}

/// The fields of a stored definition, without its schemas; empty if it is no definition.
pub(super) fn object_of(definition: &StoredDefinition) -> CustomResourceDefinition {
    let document = definition.document();
    let fields = || {
        Some(CustomResourceDefinition {
            metadata: read(&document["metadata"])?,
            spec: read(&document["spec"])?,
            status: read(&document["status"])?,
        })
    };
    fields().unwrap_or_default()
}

/// A part of a document; that of an empty object if there is none.
fn read<'a, T: Deserialize<'a> + Default>(part: &'a Value) -> Option<T> {
    if part.is_null() {
        return Some(T::default());
    }
    T::deserialize(part).ok()
}

/// A definition as the controller remembers it, without its schemas.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) uid: String,
    /// When it was created, in seconds.
    pub(super) created: i64,
    pub(super) version: u64,
    generation: i64,
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) accepted: CustomResourceDefinitionNames,
    /// Whether the condition NamesAccepted is true.
    pub(super) has_all_names: bool,
    pub(super) is_established: bool,
    /// Whether a server could not serve its schemas.
    pub(super) is_refused: bool,
    pub(super) is_deleting: bool,
    /// Whether it stays until its objects are deleted.
    pub(super) has_finalizer: bool,
}

impl Known {
    pub(super) fn of_object(object: &CustomResourceDefinition) -> Self {
        let (metadata, status) = (&object.metadata, &object.status);
        let version = metadata.resource_version.as_deref().unwrap_or_default();
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            created: metadata
                .creation_timestamp
                .map(Time::unix_seconds)
                .unwrap_or_default(),
            version: version.parse().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            group: object.spec.group.clone(),
            plural: object.spec.names.plural.clone(),
            accepted: status.accepted_names.clone().unwrap_or_default(),
            has_all_names: status.conditions.is_condition_true("NamesAccepted"),
            is_established: status.conditions.is_condition_true("Established"),
            is_refused: status.conditions.is_condition_true("NonStructuralSchema"),
            is_deleting: metadata.deletion_timestamp.is_some(),
            has_finalizer: metadata.finalizers.iter().any(|known| known == CLEANUP),
        }
    }

    /// Whether it keeps a name that another definition has got too. Two servers may give the same name to two definitions at the
    /// same time; all of them decide alike which one keeps it: one that is established, else the older one.
    pub(super) fn comes_before(&self, other: &Self) -> bool {
        let rank = |known: &Self| (!known.is_established, known.created);
        (rank(self), &self.uid) < (rank(other), &other.uid)
    }

    /// Whether another definition must give up a name because of this one.
    pub(super) fn contests(&self, other: &Self) -> bool {
        self.group == other.group
            && self.name != other.name
            && !other.is_established
            && self.comes_before(other)
            && share_names(&self.accepted, &other.accepted)
    }

    /// Whether its kind is to be served.
    pub(super) fn is_served(&self) -> bool {
        self.has_all_names || self.is_established
    }

    pub(super) fn resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.plural)
    }

    /// Whether a [state](Known::state) is one of this definition, with the names that it has or others.
    pub(super) fn is_state(&self, state: &str) -> bool {
        let rest = state.strip_prefix(&*self.uid);
        !self.uid.is_empty() && rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// The state of all that decides how the kind is served. A deletion leaves the generation alone.
    pub(super) fn state(&self) -> SmolStr {
        let (generation, names) = (self.generation, &self.accepted);
        // No name has a slash or a comma.
        SmolStr::new(format!(
            "{}/{generation}/{}/{}/{}/{}/{}/{}",
            self.uid,
            names.plural,
            names.kind,
            names.short_names.join(","),
            names.categories.join(","),
            names.singular.as_deref().unwrap_or_default(),
            names.list_kind.as_deref().unwrap_or_default(),
        ))
    }
}

/// Plural, singular and short names, as far as there are any.
pub(super) fn resources(names: &CustomResourceDefinitionNames) -> impl Iterator<Item = &String> {
    let all = std::iter::once(&names.plural).chain(&names.singular);
    all.chain(&names.short_names)
        .filter(|name| !name.is_empty())
}

/// The kind and that of lists, as far as there are any.
pub(super) fn kinds(names: &CustomResourceDefinitionNames) -> impl Iterator<Item = &String> {
    let all = std::iter::once(&names.kind).chain(&names.list_kind);
    all.filter(|name| !name.is_empty())
}

/// Whether two kinds of a group have a name in common.
fn share_names(one: &CustomResourceDefinitionNames, other: &CustomResourceDefinitionNames) -> bool {
    resources(one).any(|name| resources(other).any(|other| other == name))
        || kinds(one).any(|name| kinds(other).any(|other| other == name))
}
