//! From the registered versions of each resource to its [`Kind`], with every problem of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use apiloom_meta::kind::{CellSource, ResourceDef};
use apiloom_meta::{GroupKind, GroupResource, GroupVersion};
use apiloom_storage::Storage;

use super::super::converted::Converted;
use super::super::kind::{Kind, KindVersion};
use super::super::namespace::Namespace;
use super::super::prepared::Handed;
use super::super::readers::Readers;
use super::super::report::ReadCounts;
use super::super::strategy::ErasedStrategy;

/// Group and plural.
pub(super) type KindId = (String, String);

/// The makings of kinds.
pub(super) struct Kinds<'a> {
    pub(super) store: Arc<dyn Storage>,
    pub(super) stores: Vec<(KindId, Arc<dyn Storage>)>,
    pub(super) key_prefix: String,
    pub(super) strategies: Vec<(KindId, &'static str, Box<dyn ErasedStrategy>)>,
    /// How many bytes slow readers of a kind may keep: as many as its history.
    pub(super) readers_bytes: usize,
    pub(super) problems: &'a mut Vec<String>,
}

impl Kinds<'_> {
    /// The kinds that have no problem, and all ids in order of registration.
    pub(super) fn build(
        &mut self,
        defs: Vec<ResourceDef>,
    ) -> (Vec<KindId>, BTreeMap<KindId, Arc<Kind>>) {
        let mut order: Vec<KindId> = Vec::new();
        let mut versions: BTreeMap<KindId, Vec<ResourceDef>> = BTreeMap::new();
        for def in defs {
            let id = (def.group.to_owned(), def.plural.to_owned());
            if !order.contains(&id) {
                order.push(id.clone());
            }
            versions.entry(id).or_default().push(def);
        }
        let kinds = versions
            .into_iter()
            .filter_map(|(id, defs)| Some((id.clone(), Arc::new(self.kind(&id, defs)?))))
            .collect();
        for (id, version, _) in std::mem::take(&mut self.strategies) {
            let gv = GroupVersion::new(&id.0, version);
            self.problems.push(format!(
                "a strategy for {} of {gv}, which is not registered or has one already",
                id.1
            ));
        }
        for ((group, plural), _) in &self.stores {
            if !order.iter().any(|(g, p)| (g, p) == (group, plural)) {
                let resource = GroupResource::new(group, plural);
                self.problems
                    .push(format!("a store for {resource}, which is not registered"));
            }
        }
        (order, kinds)
    }

    /// Where a kind is kept.
    fn store(&self, id: &KindId) -> Arc<dyn Storage> {
        let own = self.stores.iter().find(|(owner, _)| owner == id);
        Arc::clone(own.map_or(&self.store, |(_, store)| store))
    }

    fn kind(&mut self, id: &KindId, defs: Vec<ResourceDef>) -> Option<Kind> {
        let consistent = self.check_versions(&defs);
        let hub = self.hub(&defs);
        let storage_version = self.storage_version(&defs);
        let first = defs.first()?;
        let (resource, group_kind, scope) =
            (first.group_resource(), first.group_kind(), first.scope);
        let is_namespace = Namespace::is_kind(first);
        let versions: Vec<Option<KindVersion>> =
            defs.into_iter().map(|def| self.version(id, def)).collect();
        let versions: Vec<KindVersion> = versions.into_iter().collect::<Option<_>>()?;
        let reads = ReadCounts::new(versions[storage_version?].def.selectable.len());
        let converted = versions.iter().map(|_| Converted::default()).collect();
        consistent.then_some(Kind {
            versions,
            converted,
            hub: hub?,
            storage_version: storage_version?,
            resource,
            group_kind: GroupKind::new(group_kind.group, group_kind.kind),
            scope,
            is_namespace,
            store: self.store(id),
            key_prefix: self.key_prefix.clone(),
            newest_write: AtomicU64::new(0),
            reads,
            handed: Handed::default(),
            readers: Readers::new(self.readers_bytes),
        })
    }

    /// Versions of one resource must be the same kind of thing.
    fn check_versions(&mut self, defs: &[ResourceDef]) -> bool {
        let before = self.problems.len();
        for (i, def) in defs.iter().enumerate() {
            let earlier = &defs[..i];
            if earlier.iter().any(|other| other.version == def.version) {
                self.problems
                    .push(format!("{} is registered twice", label(def)));
            }
            let Some(first) = earlier.first() else {
                continue;
            };
            if first.kind != def.kind || first.scope != def.scope || first.status != def.status {
                let line = format!(
                    "{} and {} differ in kind, scope or status subresource",
                    label(first),
                    label(def)
                );
                self.problems.push(line);
            }
        }
        self.problems.len() == before
    }

    fn hub(&mut self, defs: &[ResourceDef]) -> Option<usize> {
        let hubs: Vec<usize> = (0..defs.len())
            .filter(|&i| defs[i].conversion.is_none())
            .collect();
        for (def, conversion) in defs
            .iter()
            .filter_map(|def| Some((def, def.conversion.as_ref()?)))
        {
            if !defs
                .iter()
                .any(|hub| hub.version == conversion.hub_version && hub.conversion.is_none())
            {
                let line = format!(
                    "{}: its hub {} {} is not registered",
                    label(def),
                    conversion.hub_kind,
                    conversion.hub_version
                );
                self.problems.push(line);
            }
        }
        match hubs[..] {
            [hub] => Some(hub),
            [] => {
                self.problems
                    .push(format!("{}: no version is the hub", label(&defs[0])));
                None
            }
            _ => {
                let names: Vec<&str> = hubs.iter().map(|&i| defs[i].version).collect();
                let names = names.join(", ");
                self.problems.push(format!(
                    "{}: the versions {names} are all hubs, one must be",
                    label(&defs[0])
                ));
                None
            }
        }
    }

    fn storage_version(&mut self, defs: &[ResourceDef]) -> Option<usize> {
        let stored: Vec<usize> = (0..defs.len()).filter(|&i| defs[i].storage).collect();
        match stored[..] {
            [stored] => Some(stored),
            // Of a single version there is no doubt.
            [] if defs.len() == 1 => Some(0),
            [] => {
                self.problems.push(format!(
                    "{}: no version is the storage version",
                    label(&defs[0])
                ));
                None
            }
            _ => {
                let names: Vec<&str> = stored.iter().map(|&i| defs[i].version).collect();
                let names = names.join(", ");
                self.problems.push(format!(
                    "{}: the versions {names} are all storage versions",
                    label(&defs[0])
                ));
                None
            }
        }
    }

    fn version(&mut self, id: &KindId, def: ResourceDef) -> Option<KindVersion> {
        let position = self
            .strategies
            .iter()
            .position(|(of, version, _)| of == id && *version == def.version);
        let strategy = position.map(|at| self.strategies.remove(at).2);
        let schema = match (def.schema)() {
            Ok(schema) => schema,
            Err(errors) => {
                self.problems.extend(
                    errors
                        .0
                        .iter()
                        .map(|line| format!("{}: {line}", label(&def))),
                );
                return None;
            }
        };
        let columns = def
            .columns
            .iter()
            .filter_map(|column| match &column.source {
                CellSource::Path(path) if !schema.has_path(path) => {
                    Some((format!("column {:?}", column.name), path.to_string()))
                }
                CellSource::Query(query) if !schema.has_query(query) => {
                    Some((format!("column {:?}", column.name), query.to_string()))
                }
                CellSource::Path(_) | CellSource::Query(_) | CellSource::With(_) => None,
            });
        let selectable = def.selectable.iter().filter(|path| !schema.has_path(path));
        let missing = columns
            .chain(selectable.map(|path| ("a selectable field".to_owned(), path.to_string())));
        let lines = missing.map(|(what, path)| {
            format!(
                "{}: {what} is at {path}, which the schema does not know",
                label(&def)
            )
        });
        let incomparable = def
            .selectable
            .iter()
            .filter(|path| schema.has_path(path) && !schema.is_comparable(path));
        let lines = lines.chain(incomparable.map(|path| {
            format!(
                "{}: a selectable field is at {path}, which is no string, integer or boolean",
                label(&def)
            )
        }));
        self.problems.extend(lines);
        Some(KindVersion::new(def, schema, strategy))
    }
}

/// Which kind of which version a problem is about.
pub(super) fn label(def: &ResourceDef) -> String {
    format!(
        "{} of {}",
        def.kind,
        GroupVersion::new(def.group, def.version)
    )
}
