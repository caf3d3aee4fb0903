//! Changes of the catalog at run time: kinds are added, replaced and removed.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use apiloom_meta::GroupResource;
use apiloom_meta::kind::{GroupDef, Resource, ResourceDef, custom_definitions};

use serde_json::Value;

use super::builder::refuse_own_kinds;
use super::groups::{ambiguous_names, complete_groups};
use super::kinds::{Kinds, VersionReader, VersionStrategy, VersionWriter};
use super::resources::{Registry, fill};
use super::snapshot::{Catalog, Parts};
use crate::code::handler::Handler;
use crate::code::reader::Reader;
use crate::code::writer::Writer;
use crate::rules::strategy::Strategy;

/// Kinds and groups to add, to replace and to remove in one step; see [`Registry::change`].
#[derive(Default)]
pub struct CatalogChange {
    groups: Vec<GroupDef>,
    defs: Vec<Arc<ResourceDef>>,
    strategies: Vec<VersionStrategy>,
    readers: Vec<VersionReader>,
    writers: Vec<VersionWriter>,
    removed: Vec<GroupResource>,
}

impl fmt::Debug for CatalogChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.defs.iter().map(|def| def.gvk()).collect();
        f.debug_struct("CatalogChange")
            .field("kinds", &kinds)
            .field("removed", &self.removed)
            .finish_non_exhaustive()
    }
}

impl CatalogChange {
    /// An empty change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a group, or replaces its declaration.
    #[must_use]
    pub fn group(mut self, group: GroupDef) -> Self {
        self.groups.push(group);
        self
    }

    /// Adds one version of a kind that is a Rust type. The resource is replaced: it will have exactly the versions
    /// that this change adds.
    #[must_use]
    pub fn kind<K: Resource>(self) -> Self {
        self.definition(K::definition())
    }

    /// Adds one version of a kind by its definition; see [`CatalogChange::kind`].
    #[must_use]
    pub fn definition(mut self, def: ResourceDef) -> Self {
        self.defs.push(Arc::new(def));
        self
    }

    /// Adds all versions of the kind that a CustomResourceDefinition describes, or replaces them; see
    /// [`custom_definitions`]. Requests see a custom resource, as in kube-apiserver.
    ///
    /// ```
    /// # use apiloom_registry::{CatalogChange, Registry};
    /// # async fn example(registry: &Registry, document: serde_json::Value) -> Result<(), Vec<String>> {
    /// let change = CatalogChange::new().document(&document)?;
    /// registry.change(change).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// One line for each part of the document that is missing or wrong.
    pub fn document(mut self, document: &Value) -> Result<Self, Vec<String>> {
        let defs = custom_definitions(document, None)?;
        self.defs.extend(defs.into_iter().map(Arc::new));
        Ok(self)
    }

    /// Adds a strategy for a version of a kind in this change. Strategies of a replaced kind are dropped.
    #[must_use]
    pub fn strategy<K: Resource>(mut self, strategy: impl Strategy<K>) -> Self {
        self.strategies.push(VersionStrategy::new::<K>(strategy));
        self
    }

    /// Adds the handler of creates for a version, without a store, of a kind in this change.
    #[must_use]
    pub fn handler<K: Resource>(mut self, handler: impl Handler<K>) -> Self {
        self.writers.push(VersionWriter::of_handler::<K>(handler));
        self
    }

    /// Adds the code that reads the objects of a version, without a store, of a kind in this change.
    #[must_use]
    pub fn reader<K: Resource>(mut self, reader: impl Reader<K>) -> Self {
        self.readers.push(VersionReader::new::<K>(reader));
        self
    }

    /// Adds the code that writes the objects of a version, without a store, of a kind in this change.
    #[must_use]
    pub fn writer<K: Resource>(mut self, writer: impl Writer<K>) -> Self {
        self.writers.push(VersionWriter::new::<K>(writer));
        self
    }

    /// Removes a resource in all its versions. Its objects stay in the store.
    #[must_use]
    pub fn remove(mut self, resource: GroupResource) -> Self {
        self.removed.push(resource);
        self
    }

    fn touches(&self, resource: &GroupResource) -> bool {
        self.removed.contains(resource)
            || self
                .defs
                .iter()
                .any(|def| def.stored_resource() == *resource)
    }
}

/// Puts kinds of documents behind those of Rust types, in the order of their names: discovery is then the same after changes in
/// another order, in another server over the store, and after a restart.
fn sort_documents(defs: &mut [Arc<ResourceDef>]) {
    let name = |def: &Arc<ResourceDef>| (def.group.clone(), def.plural.clone());
    defs.sort_by_cached_key(|def| (!def.dialect.is_of_program()).then(|| name(def)));
}

impl Registry {
    /// Publishes a changed catalog in one step: requests that began before it see the old one, later requests the new
    /// one. Watches of resources that are replaced or removed end; others continue. The call returns when the watch
    /// caches of new kinds are filled, or after a timeout (see [`Registry::start`]).
    ///
    /// # Errors
    /// As [`RegistryBuilder::build`](super::builder::RegistryBuilder::build), and one line for each resource that
    /// cannot be changed: the server's own, those that a lister reads, and a removed one that is not
    /// registered. On error nothing is changed.
    pub async fn change(&self, change: CatalogChange) -> Result<(), Vec<String>> {
        let _one_at_a_time = self.changing.lock().await;
        let present = self.catalog();
        let mut problems = self.unchangeable(&present, &change);
        let own = present
            .defs
            .iter()
            .filter(|def| present.is_own(def))
            .count();
        let kept = |def: &&Arc<ResourceDef>| {
            present.is_own(def) || !change.touches(&def.stored_resource())
        };
        let mut defs: Vec<Arc<ResourceDef>> = present.defs.iter().filter(kept).cloned().collect();
        defs.extend(change.defs.iter().cloned());
        sort_documents(&mut defs);
        let namespaces = self.settings.namespaces.as_ref();
        refuse_own_kinds(own, namespaces, &mut defs, &mut problems);
        let is_declared_anew =
            |group: &&GroupDef| !change.groups.iter().any(|other| other.name == group.name);
        let mut declared: Vec<GroupDef> = present
            .declared
            .iter()
            .filter(is_declared_anew)
            .cloned()
            .collect();
        declared.extend(change.groups.iter().cloned());
        let mut groups = complete_groups(&declared, &defs, &mut problems);
        let emulation = &self.settings.emulation;
        emulation.apply(&mut groups, &defs, &mut problems);
        problems.extend(ambiguous_names(&defs));
        let mut kinds = present.kinds.clone();
        kinds.retain(|resource, of| of.kind.is_own || !change.touches(resource));
        let settings = &self.settings;
        let made = Kinds {
            store: &settings.store,
            stores: &settings.stores,
            key_prefix: &settings.key_prefix,
            groups: &groups,
            media_type: settings.media_type,
            encryption: settings.encryption.as_ref(),
            strategies: change.strategies,
            readers: change.readers,
            writers: change.writers,
            readers_bytes: settings.readers_bytes,
            scale: settings.shared.scale.as_deref(),
            checks_lazy_types: false,
            problems: &mut problems,
        };
        let (_, mut made) = made.build(change.defs, 0);
        if !problems.is_empty() {
            return Err(problems);
        }
        for (resource, before) in &present.kinds {
            let after = made.get_mut(resource).and_then(Arc::get_mut);
            match after.filter(|after| after.has_definition_of(&before.kind)) {
                Some(after) => after.is_terminating = Arc::clone(&before.kind.is_terminating),
                None if kinds.contains_key(resource) => {}
                None => before.kind.end_definition(),
            }
        }
        kinds.extend(settings.with_caches(made));
        let parts = Parts {
            declared,
            groups,
            defs,
            kinds,
        };
        let catalog = Catalog::new(parts, settings, Some(&present));
        if self.run_caches(&catalog) && !fill(&catalog).await {
            tracing::warn!("serving changed kinds before all watch caches are filled");
        }
        self.publish(catalog);
        Ok(())
    }

    /// The problems of resources that must not be changed.
    fn unchangeable(&self, present: &Catalog, change: &CatalogChange) -> Vec<String> {
        let unknown = change.removed.iter().filter_map(|resource| {
            let why = match present.kinds.get(resource) {
                None => "it is not registered",
                Some(of) if of.kind.is_own => "the server itself serves it",
                Some(_) => return None,
            };
            Some(format!("{resource} cannot be removed: {why}"))
        });
        let listed = self
            .listers
            .iter()
            .map(|lister| lister.resource())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .filter(|resource| {
                let is_own = present.kinds.get(resource).is_some_and(|of| of.kind.is_own);
                change.touches(resource) && !is_own
            })
            .map(|resource| format!("{resource} cannot be changed: a lister reads its objects"));
        unknown.chain(listed).collect()
    }
}
