//! Builds the model from checked declarations: names as text, everything sorted.

use std::collections::BTreeMap;

use apiloom_model::kind::{Release, Verb};
use apiloom_model::names::identifier;
use apiloom_model::{Group, Kind, Scope};

use crate::collect::{Declaration, Declarations};
use crate::model;
use crate::source::{Crate, GROUP, ModuleId, Namespace};

/// The hub's version, by group and kind.
pub(super) type Hubs = BTreeMap<(String, String), String>;

/// The checked declarations from which the model is built.
pub(super) struct Assembly<'a> {
    pub(super) krate: &'a Crate,
    pub(super) found: &'a Declarations,
    pub(super) hubs: &'a Hubs,
    /// The client parts of each kind, in the order of the kinds.
    pub(super) clients: &'a [model::ClientParts],
}

impl Assembly<'_> {
    /// The model of a package.
    pub(super) fn model(&self, package: &str, crate_name: &str) -> model::Model {
        let mut groups: Vec<_> = self
            .found
            .groups
            .iter()
            .map(|group| self.group(group))
            .collect();
        groups.sort_by(|a, b| a.name.cmp(&b.name));
        model::Model {
            package: package.to_owned(),
            crate_name: crate_name.to_owned(),
            configure: self.found.configure,
            groups,
            configurations: Vec::new(),
        }
    }

    fn group(&self, declared: &Declaration<Group>) -> model::Group {
        let group = &declared.value;
        let versions: Vec<String> = group
            .versions
            .iter()
            .map(|version| version.value.clone())
            .collect();
        let release = group.release.as_ref().map(|release| release.value);
        let members = self
            .found
            .kinds
            .iter()
            .filter(|kind| kind.value.group.value == group.name.value)
            // Those are registered with the subresources that they belong to.
            .filter(|kind| !kind.value.is_simple);
        let mut kinds: Vec<_> = members.map(|kind| self.kind(kind, release)).collect();
        kinds.sort_by_key(|kind| {
            (
                kind.kind.clone(),
                versions.iter().position(|version| *version == kind.version),
            )
        });
        model::Group {
            name: group.name.value.clone(),
            rust_const: rust_path(self.krate, declared.module, GROUP, Namespace::Value),
            versions,
            release: release.map(|Release { major, minor }| model::Release { major, minor }),
            kinds,
        }
    }

    /// Whether the kind has only this version, which is then its storage version.
    fn is_alone(&self, kind: &Kind) -> bool {
        let same = |other: &&Declaration<Kind>| {
            other.value.group.value == kind.group.value && other.value.kind.value == kind.kind.value
        };
        self.found.kinds.iter().filter(same).count() == 1
    }

    fn kind(&self, declared: &Declaration<Kind>, release: Option<Release>) -> model::Kind {
        let kind = &declared.value;
        let kinds = self.found.kinds.iter().zip(self.clients);
        let mut client = kinds
            .filter(|(other, _)| std::ptr::eq(*other, declared))
            .map(|(_, client)| client.clone());
        let key = (kind.group.value.clone(), kind.kind.value.clone());
        model::Kind {
            kind: kind.kind.value.clone(),
            version: kind.version.value.clone(),
            plural: kind.plural.value.clone(),
            rust_type: rust_type(self.krate, declared),
            conditions: declared.conditions.clone(),
            namespaced: kind.scope == Scope::Namespaced,
            has_client: kind.has_client,
            no_client_verbs: !kind.has_client_verbs,
            verbs: verbs(&kind.verbs),
            subresources: subresources(kind),
            client: client.next().unwrap_or_default(),
            served: is_on(kind) && !gone(kind, release),
            storage: kind.has_store && (kind.storage || self.is_alone(kind)),
            hub: self.hubs.get(&key).unwrap_or(&kind.version.value).clone(),
            fields: kind
                .root
                .fields
                .iter()
                .map(|field| field.json_name.clone())
                .collect(),
        }
    }
}

fn verbs<'a>(verbs: impl IntoIterator<Item = &'a Verb>) -> Vec<String> {
    let verbs = verbs.into_iter();
    verbs.map(|verb| verb.as_str().to_owned()).collect()
}

/// The subresources that have a verb: a verb that the kind skips is skipped below its objects too, except by a handler.
fn subresources(kind: &Kind) -> Vec<model::Subresource> {
    let all = kind.subresources.iter().map(|sub| model::Subresource {
        name: sub.name.value.clone(),
        verbs: verbs(
            sub.verbs
                .iter()
                .filter(|verb| sub.handler.is_some() || kind.verbs.contains(verb)),
        ),
        for_editors: sub.scale.is_some() || sub.handler.is_some(),
        // A stream that takes input, such as a console, is no reading.
        is_interactive: sub.connects && sub.verbs.iter().any(|verb| *verb != Verb::Get),
    });
    all.filter(|sub| !sub.verbs.is_empty()).collect()
}

/// Whether this version of the kind is served if a server has no other settings.
pub(super) fn is_on(kind: &Kind) -> bool {
    kind.served && !kind.disabled_by_default
}

/// Whether this version of the kind is removed in the release.
pub(super) fn is_removed(kind: &Kind, now: Release) -> bool {
    let lifecycle = kind.lifecycle.as_ref();
    let removed = lifecycle.and_then(|lifecycle| lifecycle.removed.as_ref());
    removed.is_some_and(|removed| now >= removed.value)
}

/// Whether this version of the kind is removed in the release or introduced later.
pub(super) fn gone(kind: &Kind, release: Option<Release>) -> bool {
    let (Some(lifecycle), Some(now)) = (&kind.lifecycle, release) else {
        return false;
    };
    is_removed(kind, now)
        || lifecycle
            .introduced
            .as_ref()
            .is_some_and(|introduced| now < introduced.value)
}

/// `crate::v1alpha1::Flunder`.
pub(super) fn rust_type(krate: &Crate, kind: &Declaration<Kind>) -> String {
    let name = &kind.value.root.name.text;
    rust_path(krate, kind.module, name, Namespace::Type)
}

/// The path of an item, valid anywhere in the crate.
pub(super) fn rust_path(
    krate: &Crate,
    module: ModuleId,
    item: &str,
    namespace: Namespace,
) -> String {
    let names = krate.public_path(module, item, namespace);
    // A private item is reported as a problem elsewhere.
    let names = names.unwrap_or_else(|| {
        let module = krate.module(module).path.iter().cloned();
        module.chain([item.to_owned()]).collect()
    });
    let names = names.into_iter().map(|name| identifier(&name));
    let path: Vec<String> = std::iter::once("crate".to_owned()).chain(names).collect();
    path.join("::")
}
