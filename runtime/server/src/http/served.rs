//! What is served, as discovery and OpenAPI read it: groups, versions and resources as plain data.
//!
//! Documents are pure functions of this view, so they are tested without a registry.

use apiloom_meta::ResourceDef;
use apiloom_meta::kind::Verb;

use crate::registry::{Namespace, Registry};

/// A group with its served versions, preferred first.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    /// Empty for core.
    pub(crate) name: &'a str,
    pub(crate) versions: Vec<Version<'a>>,
}

/// A version of a group with its resources in order of registration.
#[derive(Clone, Debug)]
pub(crate) struct Version<'a> {
    pub(crate) name: &'a str,
    pub(crate) kinds: Vec<Kind<'a>>,
}

/// A kind of one version.
#[derive(Clone, Debug)]
pub(crate) struct Kind<'a> {
    pub(crate) def: &'a ResourceDef,
    /// The version its objects are stored in.
    pub(crate) storage_version: &'a str,
}

/// A subresource of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subresource<'a> {
    pub(crate) name: &'static str,
    def: &'a ResourceDef,
    /// What it serves when the kind skips no verb, sorted.
    most: &'static [Verb],
}

impl<'a> Subresource<'a> {
    /// Its verbs, sorted: a verb that the kind skips is skipped below its objects too.
    pub(crate) fn verbs(self) -> impl Iterator<Item = Verb> + use<'a> {
        let served = |verb: &&Verb| self.def.has_verb(**verb);
        self.most.iter().filter(served).copied()
    }
}

/// The subresources of a kind that have a verb, sorted by name.
pub(crate) fn subresources(def: &ResourceDef) -> impl Iterator<Item = Subresource<'_>> {
    // Namespaces are the one kind whose finalizers of its own (`spec.finalizers`) are written through a path of their own.
    let is_namespace = Namespace::is_kind(def);
    let known: [(bool, &str, &[Verb]); 2] = [
        (is_namespace, "finalize", &[Verb::Update]),
        (
            def.status,
            "status",
            &[Verb::Get, Verb::Patch, Verb::Update],
        ),
    ];
    known
        .into_iter()
        .filter(|(exists, ..)| *exists)
        .map(move |(_, name, most)| Subresource { name, def, most })
        .filter(|subresource| subresource.verbs().next().is_some())
}

/// The verbs of a kind in the order in which discovery lists them.
pub(crate) fn sorted_verbs(def: &ResourceDef) -> impl Iterator<Item = Verb> {
    Verb::ALL.into_iter().filter(|verb| def.has_verb(*verb))
}

/// The view of a registry.
pub(crate) fn served(registry: &Registry) -> Vec<Group<'_>> {
    let kinds_of = |group: &str, version: &str| {
        let endpoints = registry
            .endpoints()
            .iter()
            .filter(|e| e.def().group == group && e.def().version == version);
        endpoints
            .map(|e| Kind {
                def: e.def(),
                storage_version: e.storage_version(),
            })
            .collect()
    };
    registry
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
                })
                .collect(),
        })
        .collect()
}
