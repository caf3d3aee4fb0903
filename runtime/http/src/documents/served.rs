//! The served groups, versions and kinds as plain data, for discovery and OpenAPI.
//!
//! Documents are pure functions of this data, so they can be tested without a registry.

mod remote;

use apiloom_meta::ResourceDef;
use apiloom_meta::kind::{Publication, Verb};

use apiloom_registry::Catalog;

pub use remote::{RemoteResource, of_discovery, of_resource_list};

/// A group with its served versions, preferred first.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    /// Name of the group; empty for core.
    pub(crate) name: &'a str,
    pub(crate) versions: Vec<Version<'a>>,
}

/// A version of a group with its resources, in order of registration.
#[derive(Clone, Debug)]
pub(crate) struct Version<'a> {
    pub(crate) name: &'a str,
    pub(crate) kinds: Vec<Kind<'a>>,
    /// What is known of a version that another server serves; it has no kinds.
    pub(crate) remote: Option<RemoteVersion<'a>>,
}

/// A version that another server serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteVersion<'a> {
    /// Its resources; `None` if they were never read.
    pub(crate) resources: Option<&'a [RemoteResource]>,
    /// Whether they are those of now.
    pub(crate) is_fresh: bool,
}

/// One version of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Kind<'a> {
    pub(crate) def: &'a ResourceDef,
    /// The version in which its objects are stored.
    pub(crate) storage_version: &'a str,
    /// Whether no objects are created any more, since the definition of the kind is being deleted.
    pub(crate) is_terminating: bool,
}

/// The verbs of a custom resource, in the order of kube-apiserver.
const VERBS_OF_DEFINITION: [Verb; 8] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// The verbs of a custom resource whose definition is being deleted.
const TERMINATING_VERBS: [Verb; 5] = [
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Watch,
];

/// The verbs of a kind, in the order of discovery.
pub(crate) fn listed_verbs<'a>(kind: &Kind<'a>) -> impl Iterator<Item = Verb> + use<'a> {
    let def = kind.def;
    let verbs = match (def.dialect.discovery, kind.is_terminating) {
        (Publication::Program, _) => &Verb::ALL[..],
        (Publication::Definition, false) => &VERBS_OF_DEFINITION,
        (Publication::Definition, true) => &TERMINATING_VERBS,
    };
    verbs.iter().copied().filter(|verb| def.has_verb(*verb))
}

/// Groups with the versions of others that are missing.
pub(crate) fn add_missing<'a>(
    mut groups: Vec<Group<'a>>,
    others: Vec<Group<'a>>,
) -> Vec<Group<'a>> {
    for group in others {
        let Some(known) = groups.iter_mut().find(|known| known.name == group.name) else {
            groups.push(group);
            continue;
        };
        for version in group.versions {
            if known.versions.iter().all(|of| of.name != version.name) {
                known.versions.push(version);
            }
        }
    }
    groups
}

/// The served groups of a catalog.
pub(crate) fn served(catalog: &Catalog) -> Vec<Group<'_>> {
    let kinds_of = |group: &str, version: &str| {
        let endpoints = catalog
            .endpoints()
            .iter()
            .filter(|e| e.def().group == group && e.def().version == version);
        endpoints
            .map(|e| Kind {
                def: e.def(),
                storage_version: e.storage_version(),
                is_terminating: e.is_terminating(),
            })
            .collect()
    };
    catalog
        .groups()
        .iter()
        .map(|group| Group {
            name: &group.name,
            versions: group
                .versions
                .iter()
                .map(|version| Version {
                    name: version,
                    kinds: kinds_of(&group.name, version),
                    remote: None,
                })
                .collect(),
        })
        .collect()
}
