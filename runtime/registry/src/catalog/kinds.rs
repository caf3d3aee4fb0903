//! Builds a [`Kind`] from the registered versions of a resource, and reports the problems.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use apiloom_meta::kind::{
    Conversion, ConversionMethod, DeletionRule, ObjectDeletion, Place, Resource, ResourceDef,
    SchemaSource, SmolStr, SubresourceDef, Verb,
};
use apiloom_meta::{GroupResource, GroupVersion, GroupVersionKind};
use apiloom_storage::Storage;

use super::groups::{Group, group_label};
use crate::code::handler::{CreateOnly, Handler};
use crate::code::reader::{Reader, TypedReader};
use crate::code::writer::{TypedWriter, Writer};
use crate::endpoint::body_definitions;
use crate::objects::code::{KindCode, Read, Write};
use crate::objects::encryption::{Encryption, IdentityCipher, ValueCipher};
use crate::objects::hooks::ErasedStrategy;
use crate::objects::key::Keys;
use crate::objects::kind::Kind;
use crate::objects::kind_version::{KindVersion, VersionIndex};
use crate::objects::kind_versions::{AsynchronousConversion, KindConversion, KindVersions};
use crate::objects::prepared_object::PendingWrites;
use crate::objects::read_counts::ReadCounts;
use crate::objects::readers::Readers;
use crate::objects::stored_value::StorageMediaType;
use crate::problems::{kind_problem, label, two_kinds_problem, with_places};
use crate::rules::strategy::{Strategy, TypedStrategy};

/// A strategy, a reader or a writer, for one version of a kind.
pub(super) struct VersionCode<T> {
    of: GroupResource,
    version: SmolStr,
    /// How messages call the code.
    what: &'static str,
    /// Source location of the kind.
    place: Option<Place>,
    code: T,
}

/// A strategy for one version of a kind.
pub(super) type VersionStrategy = VersionCode<Box<dyn ErasedStrategy>>;

/// A reader for one version of a kind.
pub(super) type VersionReader = VersionCode<Arc<dyn Read>>;

/// A writer, or a handler, for one version of a kind.
pub(super) type VersionWriter = VersionCode<Arc<dyn Write>>;

impl<T> VersionCode<T> {
    pub(super) fn of<K: Resource>(what: &'static str, code: T) -> Self {
        Self {
            of: GroupResource::new(K::GROUP, K::PLURAL),
            version: SmolStr::new_static(K::VERSION),
            what,
            place: K::definition().place,
            code,
        }
    }

    /// Removes the code for a version from the list, and returns it.
    fn take(list: &mut Vec<Self>, id: &GroupResource, version: &str) -> Option<T> {
        let position = list
            .iter()
            .position(|one| one.of == *id && one.version == version)?;
        Some(list.remove(position).code)
    }

    /// The problem of code whose version is not registered.
    fn unused_problem(&self, why: &str) -> String {
        let GroupResource { group, resource } = &self.of;
        let gv = GroupVersion::new(group, &*self.version);
        let problem = format!(
            "a {} for {resource} of {gv}, which is not registered{why}",
            self.what
        );
        with_places([self.place], problem)
    }
}

impl VersionStrategy {
    pub(super) fn new<K: Resource>(strategy: impl Strategy<K>) -> Self {
        Self::of::<K>("strategy", Box::new(TypedStrategy::<K, _>::new(strategy)))
    }
}

impl VersionReader {
    pub(super) fn new<K: Resource>(reader: impl Reader<K>) -> Self {
        Self::of::<K>("reader", Arc::new(TypedReader::<K, _>::new(reader)))
    }
}

impl VersionWriter {
    pub(super) fn new<K: Resource>(writer: impl Writer<K>) -> Self {
        Self::of::<K>("writer", Arc::new(TypedWriter::<K, _>::new(writer)))
    }

    pub(super) fn of_handler<K: Resource>(handler: impl Handler<K>) -> Self {
        let writer = TypedWriter::<K, _>::new(CreateOnly(handler));
        Self::of::<K>("handler", Arc::new(writer))
    }
}

/// Everything that kinds are built from, and the problems found so far.
pub(super) struct Kinds<'a> {
    pub(super) store: &'a Arc<dyn Storage>,
    /// Separate stores of single resources.
    pub(super) stores: &'a [(GroupResource, Arc<dyn Storage>)],
    pub(super) key_prefix: &'a str,
    /// The groups, with the releases that they emulate.
    pub(super) groups: &'a [Group],
    /// Format of the objects that are written.
    pub(super) media_type: StorageMediaType,
    pub(super) encryption: Option<&'a Arc<dyn Encryption>>,
    pub(super) strategies: Vec<VersionStrategy>,
    pub(super) readers: Vec<VersionReader>,
    pub(super) writers: Vec<VersionWriter>,
    /// Memory limit for slow readers of a kind, in bytes: as for its history.
    pub(super) readers_bytes: usize,
    /// The kind of the bodies of the subresource `scale`.
    pub(super) scale: Option<&'a ResourceDef>,
    /// Whether schemas that are otherwise made when first needed are checked now.
    pub(super) checks_lazy_types: bool,
    pub(super) problems: &'a mut Vec<String>,
}

impl Kinds<'_> {
    /// Builds the kinds without problems; also returns the ids of all, in order of registration. The server's own
    /// definitions come first.
    pub(super) fn build(
        mut self,
        defs: Vec<Arc<ResourceDef>>,
        own: usize,
    ) -> (Vec<GroupResource>, BTreeMap<GroupResource, Arc<Kind>>) {
        let mut order: Vec<GroupResource> = Vec::new();
        let mut versions: BTreeMap<GroupResource, Vec<Arc<ResourceDef>>> = BTreeMap::new();
        let mut own_ids: BTreeSet<GroupResource> = BTreeSet::new();
        for (index, def) in defs.into_iter().enumerate() {
            let id = def.stored_resource();
            if !order.contains(&id) {
                order.push(id.clone());
            }
            if index < own {
                own_ids.insert(id.clone());
            }
            versions.entry(id).or_default().push(def);
        }
        let kinds: BTreeMap<GroupResource, Arc<Kind>> = versions
            .into_iter()
            .filter_map(|(id, defs)| {
                Some((
                    id.clone(),
                    Arc::new(self.kind(&id, defs, own_ids.contains(&id))?),
                ))
            })
            .collect();
        self.check_store_paths(&kinds);
        let strategies = self.strategies.iter();
        let strategies = strategies.map(|one| one.unused_problem(" or has one already"));
        let why = ", has a store, or has one already";
        let readers = self.readers.iter().map(|one| one.unused_problem(why));
        let writers = self.writers.iter().map(|one| one.unused_problem(why));
        self.problems
            .extend(strategies.chain(readers).chain(writers));
        (order, kinds)
    }

    /// Reports kinds whose keys are among those of another kind.
    fn check_store_paths(&mut self, kinds: &BTreeMap<GroupResource, Arc<Kind>>) {
        let stored = kinds.values().filter(|kind| kind.has_store());
        let mut prefixes: Vec<(&str, &Kind)> =
            stored.map(|kind| (kind.keys.of_all(), &**kind)).collect();
        // A prefix comes right before those that begin with it.
        prefixes.sort_by_key(|(prefix, _)| *prefix);
        for pair in prefixes.windows(2) {
            let [(outer, first), (inner, second)] = pair else {
                continue;
            };
            if inner.starts_with(outer) && Arc::ptr_eq(&first.store, &second.store) {
                let problem =
                    format!("have the same keys in the store, {inner}: change a `store_path`");
                self.problems.push(two_kinds_problem(
                    &first.versions.stored_version().def,
                    &second.versions.stored_version().def,
                    problem,
                ));
            }
        }
    }

    /// The store of a kind.
    fn store(&self, id: &GroupResource) -> Arc<dyn Storage> {
        let own = self.stores.iter().find(|(owner, _)| owner == id);
        Arc::clone(own.map_or(self.store, |(_, store)| store))
    }

    /// The cipher of a kind.
    fn cipher(&self, id: &GroupResource) -> Arc<dyn ValueCipher> {
        match self.encryption {
            Some(encryption) => encryption.cipher(id),
            None => Arc::new(IdentityCipher),
        }
    }

    fn kind(
        &mut self,
        id: &GroupResource,
        defs: Vec<Arc<ResourceDef>>,
        is_own: bool,
    ) -> Option<Kind> {
        let consistent = self.check_versions(&defs);
        self.check_subresources(&defs);
        let hub = self.hub(&defs);
        let conversion = self.conversion(&defs);
        let first = defs.first()?;
        let storage_version = if first.has_store {
            self.storage_version(&defs)
        } else {
            hub
        };
        let emulates = emulated_group(self.groups, &defs);
        let emulates = emulates.and_then(|group| {
            let release = group.release?;
            Some(format!(
                "{} emulates release {release}",
                group_label(&group.name)
            ))
        });
        // Every release reads JSON, and an earlier one may not know the numbers of fields.
        let media_type = match emulates {
            Some(_) => StorageMediaType::Json,
            None => self.media_type,
        };
        let scope = first.scope;
        let versions: Vec<Option<KindVersion>> = defs
            .into_iter()
            .enumerate()
            .map(|(index, def)| self.version(index, def))
            .collect();
        let versions: Vec<KindVersion> = versions.into_iter().collect::<Option<_>>()?;
        let versions = KindVersions::new(versions, hub?, storage_version?, conversion?);
        let stored = &versions.stored_version().def;
        consistent.then_some(Kind {
            reads: ReadCounts::new(stored.selectable.len()),
            keys: Keys::new(self.key_prefix, id, stored),
            versions,
            has_other_versions: AtomicBool::new(false),
            resource: id.clone(),
            scope,
            is_own,
            is_terminating: Arc::default(),
            store: self.store(id),
            cipher: self.cipher(id),
            emulates,
            media_type,
            newest_write: AtomicU64::new(0),
            listed: OnceLock::new(),
            pending_writes: PendingWrites::default(),
            readers: Readers::new(self.readers_bytes),
        })
    }

    /// Reports subresources whose bodies are of another kind than their rule says: that of scales is known, and what a handler
    /// takes and gives.
    fn check_subresources(&mut self, defs: &[Arc<ResourceDef>]) {
        let scale = self.scale.map(ResourceDef::gvk);
        for def in defs {
            for sub in &def.subresources {
                let is_scale = |kind: &GroupVersionKind| {
                    sub.scale_paths().is_some() && scale.as_ref() == Some(kind)
                };
                if sub.handler.is_some() {
                    continue;
                }
                let mut others = sub.input.iter().chain(&sub.output);
                if let Some(other) = others.find(|other| !is_scale(other)) {
                    let problem = format!(
                        "the subresource {} has objects of the kind {}, which no handler makes",
                        sub.name, other.kind
                    );
                    self.problems.push(kind_problem(def, problem));
                }
            }
        }
    }

    /// Whether the versions of a resource agree in kind, scope, subresources and store; reports those that do not.
    fn check_versions(&mut self, defs: &[Arc<ResourceDef>]) -> bool {
        let before = self.problems.len();
        for (i, def) in defs.iter().enumerate() {
            let earlier = &defs[..i];
            let is_same = |other: &&Arc<ResourceDef>| {
                other.version == def.version && other.group == def.group
            };
            if let Some(same) = earlier.iter().find(is_same) {
                let problem = format!("{} is registered twice", label(def));
                self.problems
                    .push(with_places([same.place, def.place], problem));
            }
            let Some(first) = earlier.first() else {
                continue;
            };
            if first.kind != def.kind || first.scope != def.scope {
                let problem = "differ in kind or scope";
                self.problems.push(two_kinds_problem(first, def, problem));
            }
            if !own_subresources(first).eq(own_subresources(def)) {
                let problem = "differ in other subresources than status and scale";
                self.problems.push(two_kinds_problem(first, def, problem));
            }
            let in_same_group = first.group == def.group;
            if in_same_group && first.store_path != def.store_path {
                let problem = "differ in their store path";
                self.problems.push(two_kinds_problem(first, def, problem));
            }
            if object_deletion(first) != object_deletion(def) {
                let problem = "differ in how objects are deleted";
                self.problems.push(two_kinds_problem(first, def, problem));
            }
            if first.has_store != def.has_store {
                let problem = "must both have a store or none";
                self.problems.push(two_kinds_problem(first, def, problem));
            }
        }
        self.problems.len() == before
    }

    fn hub(&mut self, defs: &[Arc<ResourceDef>]) -> Option<usize> {
        let hubs: Vec<usize> = (0..defs.len())
            .filter(|&i| defs[i].conversion.is_none())
            .collect();
        for (def, conversion) in defs
            .iter()
            .filter_map(|def| Some((def, def.conversion.as_ref()?)))
        {
            let is_hub = |hub: &Arc<ResourceDef>| {
                hub.version == conversion.hub_version
                    && hub.group_resource() == def.stored_resource()
                    && hub.conversion.is_none()
            };
            if !defs.iter().any(is_hub) {
                let problem = format!(
                    "its hub {} {} is not registered",
                    conversion.hub_kind, conversion.hub_version
                );
                self.problems.push(kind_problem(def, problem));
            }
        }
        self.only_version(defs, &hubs, "the hub", "hubs, one must be")
    }

    /// The conversion of a kind, which must be the same for all versions.
    fn conversion(&mut self, defs: &[Arc<ResourceDef>]) -> Option<KindConversion> {
        let spokes = || {
            defs.iter()
                .filter_map(|def| Some((def, def.conversion.as_ref()?)))
        };
        let Some((first, Conversion { method, .. })) = spokes().next() else {
            return Some(KindConversion::InMemory);
        };
        let is_other = |other: &ConversionMethod| match (method, other) {
            (ConversionMethod::InMemory(_), ConversionMethod::InMemory(_))
            | (ConversionMethod::Rename, ConversionMethod::Rename) => false,
            (ConversionMethod::Asynchronous(own), ConversionMethod::Asynchronous(other)) => {
                !Arc::ptr_eq(own, other)
            }
            _ => true,
        };
        if let Some((def, _)) = spokes().find(|(_, other)| is_other(&other.method)) {
            let problem = "convert in different ways";
            self.problems.push(two_kinds_problem(first, def, problem));
            return None;
        }
        Some(match method {
            ConversionMethod::InMemory(_) => KindConversion::InMemory,
            ConversionMethod::Rename => KindConversion::Rename,
            ConversionMethod::Asynchronous(converter) => {
                KindConversion::Asynchronous(AsynchronousConversion::new(Arc::clone(converter)))
            }
        })
    }

    fn storage_version(&mut self, defs: &[Arc<ResourceDef>]) -> Option<usize> {
        // A single version is the storage version, declared or not.
        if defs.len() == 1 {
            return Some(0);
        }
        let stored: Vec<usize> = (0..defs.len()).filter(|&i| defs[i].storage).collect();
        let declared =
            self.only_version(defs, &stored, "the storage version", "storage versions")?;
        Some(emulated_storage_version(self.groups, defs, declared))
    }

    /// The index of the only version with a property; no or several such versions are a problem.
    fn only_version(
        &mut self,
        defs: &[Arc<ResourceDef>],
        indexes: &[usize],
        singular: &str,
        plural: &str,
    ) -> Option<usize> {
        let (versions, problem): (Vec<&Arc<ResourceDef>>, String) = match *indexes {
            [index] => return Some(index),
            [] => (defs.iter().collect(), format!("no version is {singular}")),
            _ => {
                let versions: Vec<&Arc<ResourceDef>> = indexes.iter().map(|&i| &defs[i]).collect();
                let names: Vec<&str> = versions.iter().map(|def| &*def.version).collect();
                let problem = format!("the versions {} are all {plural}", names.join(", "));
                (versions, problem)
            }
        };
        let problem = format!("{}: {problem}", label(versions.first()?));
        let places = versions.iter().map(|def| def.place);
        self.problems.push(with_places(places, problem));
        None
    }

    /// The code of a version without a store; problems are where it has other verbs than the definition.
    fn code(&mut self, id: &GroupResource, def: &ResourceDef) -> KindCode {
        if def.has_store {
            return KindCode::default();
        }
        let code = KindCode {
            reader: VersionCode::take(&mut self.readers, id, &def.version),
            writer: VersionCode::take(&mut self.writers, id, &def.version),
        };
        let problems = code_problems(def, &code).into_iter();
        self.problems
            .extend(problems.map(|problem| kind_problem(def, problem)));
        code
    }

    fn version(&mut self, index: VersionIndex, def: Arc<ResourceDef>) -> Option<KindVersion> {
        let id = def.group_resource();
        let strategy = VersionCode::take(&mut self.strategies, &id, &def.version);
        let code = self.code(&id, &def);
        let version = KindVersion::new(index, def, strategy, code);
        let is_checked = match version.def.schema {
            SchemaSource::LazyType(_) => self.checks_lazy_types,
            SchemaSource::Stored(_) => false,
            SchemaSource::Type(_) | SchemaSource::Document(_) => true,
        };
        if !is_checked {
            return Some(version);
        }
        self.check_bodies(&version.def);
        let problems = version.version_schema.problems();
        if problems.is_empty() {
            return Some(version);
        }
        self.problems.extend_from_slice(problems);
        None
    }
}

impl Kinds<'_> {
    /// Reports the problems of the bodies of handlers, whose kinds are not registered themselves.
    fn check_bodies(&mut self, def: &ResourceDef) {
        let bodies = def.subresources.iter().flat_map(body_definitions);
        for body in bodies.filter(|body| body.gvk() != def.gvk()) {
            let version = KindVersion::new(0, Arc::new(body), None, KindCode::default());
            for problem in version.version_schema.problems() {
                // Several subresources may have the same bodies.
                if !self.problems.contains(problem) {
                    self.problems.push(problem.clone());
                }
            }
        }
    }
}

/// The verbs of a reader.
const READS: [Verb; 3] = [Verb::Get, Verb::List, Verb::Watch];

/// The verbs of a writer.
const WRITES: [Verb; 4] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete];

/// Verbs that need another one, by which the server answers a part of their requests.
const NEEDED: [(Verb, Verb); 6] = [
    (Verb::Watch, Verb::List),
    (Verb::Update, Verb::Get),
    (Verb::Patch, Verb::Get),
    (Verb::Delete, Verb::Get),
    (Verb::DeleteCollection, Verb::List),
    (Verb::DeleteCollection, Verb::Delete),
];

/// Where the code of a kind without a store does not have the verbs of its definition.
fn code_problems(def: &ResourceDef, code: &KindCode) -> Vec<String> {
    let mut problems = Vec::new();
    if !def.subresources.is_empty() {
        problems.push("it has no store, so it can have no subresources".to_owned());
    }
    let reader = code.reader.as_ref().map(|reader| reader.verbs());
    let writer = code.writer.as_ref().map(|writer| writer.verbs());
    for (what, all, of_code) in [
        ("reader", &READS[..], reader),
        ("writer", &WRITES[..], writer),
    ] {
        let chosen = |has: &dyn Fn(Verb) -> bool| {
            let chosen = all.iter().filter(|verb| has(**verb));
            Vec::from_iter(chosen.map(|verb| verb.as_str())).join(", ")
        };
        let declared = chosen(&|verb| def.has_verb(verb));
        let Some(of_code) = of_code else {
            if declared == Verb::Create.as_str() {
                problems.push(format!(
                    "it has no store, and no handler answers creates: add `.handler::<{}>(..)` to the builder",
                    def.kind
                ));
            } else if !declared.is_empty() {
                problems.push(format!(
                    "it has no store, and no {what} answers {declared}: add `.{what}::<{}>(..)` to the builder",
                    def.kind
                ));
            }
            continue;
        };
        let answered = chosen(&|verb| of_code.contains(&verb));
        if answered != declared {
            let none = |verbs: String| Some(verbs).filter(|verbs| !verbs.is_empty());
            let [answered, declared] =
                [answered, declared].map(|verbs| none(verbs).unwrap_or_else(|| "none".to_owned()));
            problems.push(format!(
                "its {what} answers other verbs than it declares: {answered}, and not {declared}"
            ));
        }
    }
    let needed = NEEDED.iter();
    let needed = needed.filter(|(verb, other)| def.has_verb(*verb) && !def.has_verb(*other));
    problems.extend(needed.map(|(verb, other)| {
        format!(
            "it has no store, so its verb {} needs the verb {}",
            verb.as_str(),
            other.as_str()
        )
    }));
    problems
}

/// The first group of a kind that behaves as in an earlier release.
fn emulated_group<'g>(groups: &'g [Group], defs: &[Arc<ResourceDef>]) -> Option<&'g Group> {
    let is_of_kind = |group: &&Group| defs.iter().any(|def| def.group == group.name);
    let mut of_kind = groups.iter().filter(is_of_kind);
    of_kind.find(|group| group.is_emulated())
}

/// The storage version of a kind: the declared one or, if an emulated release does not have that, the preferred version
/// of those that it has, in the same group if there is one, else in another group of the kind. So the build of that release
/// can read what is written. If it has none, it does not know the kind, and the declared version is as good.
fn emulated_storage_version(groups: &[Group], defs: &[Arc<ResourceDef>], declared: usize) -> usize {
    let storage = &defs[declared];
    // The position and the group of a version's group.
    let group_of = |def: &ResourceDef| {
        let mut positions = groups.iter().enumerate();
        positions.find(|(_, group)| group.name == def.group)
    };
    if group_of(storage).is_none_or(|(_, group)| !group.is_emulated() || group.has(storage)) {
        return declared;
    }
    let known = defs.iter().enumerate().filter_map(|(index, def)| {
        let (position, group) = group_of(def).filter(|(_, group)| group.has(def))?;
        let is_other = def.group != storage.group;
        Some(((is_other, position, group.preference(&def.version)), index))
    });
    known.min().map_or(declared, |(_, index)| index)
}

/// The subresources that each version of a kind must have; status and scale may differ, as those of definitions do.
fn own_subresources(def: &ResourceDef) -> impl Iterator<Item = &str> {
    let may_differ = [SubresourceDef::STATUS, SubresourceDef::SCALE];
    let names = def.subresource_names();
    names.filter(move |name| !may_differ.contains(name))
}

/// How objects of a kind are deleted; `None` for containers, whose fields are other ones in other versions.
fn object_deletion(def: &ResourceDef) -> Option<&ObjectDeletion> {
    match &def.deletion {
        DeletionRule::Object(rule) => Some(rule),
        DeletionRule::Container { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use apiloom_meta::kind::{GroupDef, Lifecycle, Release};

    use super::super::groups::complete_groups;
    use super::*;
    use crate::tests::Gadget;

    /// The storage version that a server of release 3.0 uses for a kind with these versions, of which the first is the
    /// declared one. Each has the first release and, if there is one, the first without it.
    fn check(
        versions: &[(&str, &str, &str, Option<&str>)],
        emulated: &[(&str, &str)],
        expected: &str,
    ) {
        let release = |text: &str| -> Release { text.parse().unwrap() };
        let defs = versions
            .iter()
            .map(|(group, version, introduced, removed)| ResourceDef {
                group: (*group).into(),
                version: (*version).into(),
                lifecycle: Some(Lifecycle {
                    introduced: Some(release(introduced)),
                    removed: removed.map(release),
                    ..Lifecycle::default()
                }),
                ..Gadget::definition()
            });
        let defs: Vec<Arc<ResourceDef>> = defs.map(Arc::new).collect();
        let names = ["new.example.com", "old.example.com", "older.example.com"];
        let declared = names.map(|name| GroupDef {
            name: name.into(),
            versions: vec!["v2".into(), "v1".into(), "v1beta1".into()].into(),
            release: Some(release("3.0")),
            place: None,
        });
        let mut groups = complete_groups(&declared, &defs, &mut Vec::new());
        for (name, version) in emulated {
            let mut groups = groups.iter_mut();
            let group = groups.find(|group| group.name == *name).unwrap();
            group.release = Some(release(version));
        }
        let index = emulated_storage_version(&groups, &defs, 0);
        let def = &defs[index];
        assert_eq!(def.api_version(), expected, "{emulated:?}");
    }

    #[test]
    fn an_emulated_release_stores_a_moved_kind_in_the_group_where_it_was() {
        let moved = [
            ("new.example.com", "v1", "2.0", None),
            ("new.example.com", "v1beta1", "1.5", None),
            ("old.example.com", "v1beta1", "1.0", None),
            ("old.example.com", "v1", "1.2", None),
            ("older.example.com", "v1", "0.1", Some("1.1")),
        ];
        let all = |release| {
            ["new.example.com", "old.example.com", "older.example.com"].map(|name| (name, release))
        };
        check(&moved, &[], "new.example.com/v1");
        check(&moved, &all("3.0"), "new.example.com/v1");
        check(&moved, &all("2.0"), "new.example.com/v1");
        check(&moved, &all("1.6"), "new.example.com/v1beta1");
        check(&moved, &all("1.4"), "old.example.com/v1");
        check(&moved, &all("1.1"), "old.example.com/v1beta1");
        check(&moved, &all("0.5"), "older.example.com/v1");
        // A release without the kind.
        check(&moved, &all("0.0"), "new.example.com/v1");
        // The other group is not emulated.
        check(&moved, &[("new.example.com", "1.0")], "old.example.com/v1");
        check(&moved, &[("old.example.com", "1.0")], "new.example.com/v1");
    }
}
