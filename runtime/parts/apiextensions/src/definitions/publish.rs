//! Publishes the kinds of definitions in the catalog, those of several definitions in one step.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use apiloom_kinds::apiextensions::rules::accepted::JudgedSchema;
use apiloom_meta::GroupResource;
use apiloom_meta::kind::{Converter, CustomKind, ResourceDef, SmolStr, StoredDefinition};
use apiloom_registry::{CatalogChange, NoRoom, Registry, off_thread};
use apiloom_storage::Revision;

use super::known::Known;
use crate::webhooks::{ConversionWebhook, Webhooks};

/// What is known of the schemas of a definition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Schemas {
    /// They were served by an earlier run of a server. If they have problems, so do requests for their kinds.
    Trusted,
    /// Their problems keep the kind from being served, and are conditions of the definition.
    Checked,
}

/// Changes the catalog by the kinds of definitions.
pub(super) struct Publisher {
    registry: Arc<Registry>,
    webhooks: Webhooks,
    /// Kinds to publish, with the names of their definitions.
    pending: BTreeMap<GroupResource, (String, Vec<ResourceDef>)>,
    removed: BTreeSet<GroupResource>,
    /// Kinds whose definitions are being deleted.
    terminating: BTreeSet<GroupResource>,
    /// Why the kinds of definitions cannot be served, by the names of these.
    problems: HashMap<String, Problem>,
    /// Whether room was given back while definitions wait for some.
    has_room_again: bool,
}

/// Why the kind of a definition cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The schemas have problems.
    Schemas(String),
    /// All definitions together would take too much memory.
    NoRoom(String),
}

impl Publisher {
    pub(super) fn new(registry: Arc<Registry>, webhooks: Webhooks) -> Self {
        Self {
            registry,
            webhooks,
            pending: BTreeMap::new(),
            removed: BTreeSet::new(),
            terminating: BTreeSet::new(),
            problems: HashMap::new(),
            has_room_again: false,
        }
    }

    /// Notes the present state of a definition. The schemas of one that is not served yet are checked, unless they are
    /// [trusted](Schemas::Trusted).
    pub(super) fn observe(
        &mut self,
        known: &Known,
        definition: &StoredDefinition,
        schemas: Schemas,
    ) {
        self.prepare(known, definition, schemas);
        // One that waits for its names keeps the room that was reserved for it.
        if known.is_served() || known.is_deleting {
            let room = self.registry.definition_room();
            room.see(&known.name, Revision(known.version));
        }
    }

    fn prepare(&mut self, known: &Known, definition: &StoredDefinition, schemas: Schemas) {
        let resource = known.resource();
        let catalog = self.registry.catalog();
        if catalog.is_compiled(&resource) {
            return;
        }
        let is_of_it = || {
            let custom = catalog.document_state(&resource);
            custom.is_some_and(|state| known.is_state(state))
        };
        // One that was deleted while its names were being accepted may have objects already.
        let is_served = known.is_served() || known.is_deleting && is_of_it();
        if !is_served {
            // It may have lost a name to another definition.
            self.give_room(&known.name);
            self.pending.remove(&resource);
            self.removed.insert(resource);
            return;
        }
        if known.is_deleting {
            self.terminating.insert(resource.clone());
        }
        if self.serves(known) || !known.is_served() {
            self.pending.remove(&resource);
            self.removed.remove(&resource);
            for (version, served) in catalog.stored_schemas(&resource) {
                let mut present = definition.schemas();
                if let Some((_, present)) = present.find(|(name, _)| *name == version) {
                    served.share(present.json());
                }
            }
            return;
        }
        // A large schema takes more than a second: requests go on meanwhile.
        off_thread(|| self.read(resource, known, definition, schemas));
    }

    /// Reads the schemas of a definition whose kind is not served in this state, if there is room for them.
    fn read(
        &mut self,
        resource: GroupResource,
        known: &Known,
        definition: &StoredDefinition,
        schemas: Schemas,
    ) {
        // The objects of one that is being deleted are deleted by its kind.
        if !known.is_deleting
            && let Err(full) = self.take_room(known, definition)
        {
            let problem = Problem::NoRoom(full.message());
            return self.refuse_for(&known.name, problem);
        }
        let are_accepted = || {
            let mut schemas = definition.schemas();
            schemas.all(|(_, schema)| JudgedSchema::new(&schema.json()).is_accepted_in_any())
        };
        if schemas == Schemas::Checked && !are_accepted() {
            let problems = definition.schema_problems();
            if !problems.is_empty() {
                return self.refuse(&known.name, &problems);
            }
        }
        let document = definition.document();
        let is_webhook = document["spec"]["conversion"]["strategy"] == "Webhook";
        let converter = is_webhook.then(|| {
            let webhook = ConversionWebhook::of_definition(document, &self.webhooks);
            Arc::new(webhook) as Arc<dyn Converter>
        });
        match definition.definitions(converter) {
            Ok(mut defs) => {
                for def in &mut defs {
                    let custom = def.custom.get_or_insert_with(CustomKind::default);
                    custom.uid = SmolStr::new(&known.uid);
                    custom.state = known.state();
                }
                self.removed.remove(&resource);
                self.problems.remove(&known.name);
                self.pending.insert(resource, (known.name.clone(), defs));
            }
            Err(lines) => self.refuse(&known.name, &lines),
        }
    }

    /// Notes that a definition has not got the names with which its kind was published.
    pub(super) fn withdraw(&mut self, known: &Known) {
        if !known.is_served() {
            let resource = known.resource();
            self.give_room(&known.name);
            self.pending.remove(&resource);
            self.removed.insert(resource);
        }
    }

    fn refuse(&mut self, name: &str, lines: &[String]) {
        self.refuse_for(name, Problem::Schemas(lines.join("; ")));
    }

    fn refuse_for(&mut self, name: &str, problem: Problem) {
        let (Problem::Schemas(why) | Problem::NoRoom(why)) = &problem;
        tracing::warn!(definition = name, problem = %why, "cannot serve the kind of a CustomResourceDefinition");
        self.problems.insert(name.to_owned(), problem);
    }

    fn take_room(&self, known: &Known, definition: &StoredDefinition) -> Result<(), NoRoom> {
        let room = self.registry.definition_room();
        room.take(&known.name, definition.footprint())
    }

    /// Gives back the room of a definition that is not served any more.
    fn give_room(&mut self, name: &str) {
        let is_waited_for = |problem: &Problem| matches!(problem, Problem::NoRoom(_));
        if self.registry.definition_room().give(name) && self.problems.values().any(is_waited_for) {
            self.has_room_again = true;
        }
    }

    /// Whether room was given back since the last call while definitions waited for some.
    pub(super) fn has_room_again(&mut self) -> bool {
        std::mem::take(&mut self.has_room_again)
    }

    /// Why the kind of a definition cannot be served.
    pub(super) fn problem(&self, name: &str) -> Option<&Problem> {
        self.problems.get(name)
    }

    /// Whether the kind of a definition is served in its present state, or a Rust type has its resource.
    pub(super) fn serves(&self, known: &Known) -> bool {
        let (catalog, resource) = (self.registry.catalog(), known.resource());
        catalog.is_compiled(&resource) || catalog.document_state(&resource) == Some(&known.state())
    }

    /// Notes that a definition is gone.
    pub(super) fn remove(&mut self, known: &Known) {
        let resource = known.resource();
        let room = self.registry.definition_room();
        room.see(&known.name, Revision(known.version));
        self.problems.remove(&known.name);
        self.give_room(&known.name);
        self.pending.remove(&resource);
        self.terminating.remove(&resource);
        self.removed.insert(resource);
    }

    /// Notes that only these definitions are left.
    pub(super) fn remove_all_but(&mut self, resources: &BTreeSet<GroupResource>) {
        let names: HashSet<String> = resources.iter().map(ToString::to_string).collect();
        let room = self.registry.definition_room();
        room.see_all(|name| names.contains(name));
        let catalog = self.registry.catalog();
        let gone = catalog.documents().filter(|of| !resources.contains(of));
        self.removed.extend(gone.cloned());
    }

    /// Publishes what was noted; returns the names of the definitions whose kinds were published or refused.
    pub(super) async fn publish(&mut self) -> Vec<String> {
        let catalog = self.registry.catalog();
        let pending = std::mem::take(&mut self.pending);
        let removed = std::mem::take(&mut self.removed);
        let removed: Vec<GroupResource> = removed
            .into_iter()
            .filter(|resource| {
                // A document of the program has no state.
                let state = catalog.document_state(resource);
                state.is_some_and(|state| !state.is_empty())
            })
            .collect();
        let mut names = Vec::new();
        if !pending.is_empty() || !removed.is_empty() {
            let defs = pending.values().map(|(_, defs)| &defs[..]);
            let together = self.registry.change(change(defs, &removed)).await;
            if together.is_err() {
                self.publish_each(&pending, &removed).await;
            }
            names.extend(pending.into_values().map(|(name, _)| name));
        }
        for resource in std::mem::take(&mut self.terminating) {
            if let Err(lines) = self.registry.terminate(&resource).await {
                tracing::warn!(%resource, problem = %lines.join("; "), "cannot publish a change");
            }
        }
        names
    }

    /// Publishes one kind after the other, so that a wrong one does not hold the others up.
    async fn publish_each(
        &mut self,
        pending: &BTreeMap<GroupResource, (String, Vec<ResourceDef>)>,
        removed: &[GroupResource],
    ) {
        for resource in removed {
            let alone = change([].into_iter(), std::slice::from_ref(resource));
            if let Err(lines) = self.registry.change(alone).await {
                tracing::warn!(%resource, problem = %lines.join("; "), "cannot remove a kind");
            }
        }
        for (name, defs) in pending.values() {
            let alone = change([&defs[..]].into_iter(), &[]);
            if let Err(lines) = self.registry.change(alone).await {
                self.refuse(name, &lines);
            }
        }
    }
}

fn change<'a>(
    kinds: impl Iterator<Item = &'a [ResourceDef]>,
    removed: &[GroupResource],
) -> CatalogChange {
    let removed = removed.iter().cloned();
    let change = removed.fold(CatalogChange::new(), CatalogChange::remove);
    kinds
        .flatten()
        .cloned()
        .fold(change, CatalogChange::definition)
}
