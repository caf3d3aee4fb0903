//! Serves the kinds of CustomResourceDefinitions: accepts their names, publishes them, and deletes their objects with them.
//!
//! Every server over a store does so by itself: it publishes what it watches, and writes conditions with the resourceVersion
//! that it read, so that one of several servers succeeds. Names are given to one definition after the other, and are taken back if
//! they cannot be written. The rules, conditions and messages are those of kube-apiserver.
//!
//! # Kinds from documents
//!
//! A kind is a list of `ResourceDef`, wherever they come from; those of a document have `custom`, which the few places read where custom
//! resources differ on the wire (`http/verbs/route.rs`, `http/sources/resources.rs`, `http/shape/form_writer.rs`, `http/documents/discovery`, `writes/decode.rs`).
//!
//! - `meta/src/kind/custom` makes the definitions from a CustomResourceDefinition document. `CatalogChange::document` gives them to a
//!   program, without the built-in kind.
//! - CustomResourceDefinition is a built-in kind (`runtime/kinds`, feature `apiextensions`); its strategy is
//!   `kinds/apiextensions/rules.rs`. A delete adds its finalizer by `Strategy::prepare_for_delete`. Hooks that
//!   change a definition see it without its schemas (`strategy.rs` there), and a schema that was found without errors is remembered by its
//!   digest (`accepted.rs`), for the next write and for the controller that publishes the kind.
//! - `parts/apiextensions/definitions` follows the stored definitions in every server, elected or not: `names.rs` accepts names,
//!   `publish.rs` changes the catalog, `status.rs` has the conditions and the patch that writes them, `cleanup.rs` deletes the
//!   objects of a definition that is being deleted. A kind is published when its names are accepted and established when its own
//!   server serves it. A server that is alone publishes it before the names are stored, so that one write says both; with other
//!   servers over the store the names are stored first, and the kind is established five seconds later, when the others serve it
//!   too: so no create is delayed after that, as kube-apiserver delays those of the first two seconds. Kinds that are stored are
//!   published before the server is ready. `CustomKind::state` names the state of the document, so that a change of a status alone
//!   ends no watch.
//! - A stored definition is read without its schemas (`StoredDefinition`): these are parts of the bytes that the watch cache of
//!   definitions has, and are made into trees when an object of the kind is written or read (`SchemaSource::Stored`). They are checked when
//!   a definition is new, not when a server starts again.
//! - Two servers may accept the same name for two definitions at the same time. Every server then decides alike (`known.rs`): the
//!   established one keeps it, else the older one, and the other gives it up before it can be established.
//! - `Kind::is_terminating` is shared by all kinds that are made of one definition. A create reads it before and after it stores its
//!   object, and deletes the object again if the definition went meanwhile (`writes/create.rs`); with other servers over the store, which
//!   may not know of the deletion yet, the cleanup looks at the objects for five seconds.
//! - The schema in a definition has a type of its own (`JsonSchemaProps`), so that the decoder drops and reports unknown keywords
//!   (`schema/engine/structural/unknown.rs`).
//! - Requests for custom resources go by the verb that was authorized, not by routes of methods (`route_custom` in `http/verbs/route.rs`), and
//!   pass no check of a router for `Accept` and types of patches. `tests/tests/parity` sends the same requests to kinds that are compiled and to
//!   the definitions that are generated for them, and names each difference of the answers.
//! - Kinds of documents are ordered by group and resource, behind Rust types (`registry/catalog/change.rs`): the order in which definitions
//!   came, which no other server and no later start knows, is not shown.
//! - A definition of the resource of a Rust type is established, but the Rust type is served.
//! - Conversion webhooks: `parts/apiextensions/webhooks` has the client of one (`client.rs`: address, TLS, turns, times, limits) and the converter
//!   that sends and reads reviews (`conversion.rs`); what comes back is checked for all converters alike by
//!   `registry/objects/converter_call.rs`. Each change of a definition makes a new converter, so its configuration applies to
//!   the next request. A webhook has its own limits, and kinds with a converter their own capacity for large documents, so that
//!   one that does not answer holds up no other kind.
//! - `server/services.rs` finds the addresses of services: a resolver of the program, the file of `--service-resolver`, or DNS.
//! - `apiloom serve` is a server of built-in kinds with two flags more (`parts/apiextensions/flags.rs`, `options/arguments.rs`). `kinds/definition_files.rs` reads the
//!   definitions of files, for `apiloom import` too. `parts/apiextensions/installation` checks them against an empty registry before a store is
//!   opened, applies them to the running server with the manager `definition-installer`, and waits until the controller has
//!   established their kinds and the catalog has their present state; then the line of the ready server is printed, and `/readyz` passes.
//!
//! Answers that differ from kube-apiserver's on purpose, beside those that `tests/tests/parity/differences.rs` lists:
//!
//! - A dry run of a create with a resourceVersion is refused as the create is (500). kube-apiserver refuses it in the store, which its
//!   dry run does not reach (201).
//! - A patch that removes apiVersion or kind leaves a document that cannot be decoded (422); kube-apiserver fails when it converts that (500).
//! - An operation of a JSON patch that is none (unknown `op`, a path without a slash) is named while the patch is read (400); kube-apiserver
//!   finds it when it applies the patch, and says only that the request is wrong (422).
//! - PartialObjectMetadata of a custom resource has sorted metadata, as its object has: it is sent as it is, without being read.

mod cleanup;
mod known;
mod names;
mod progress;
mod publish;
mod status;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use apiloom_kinds::apiextensions::v1::{CustomResourceDefinition, CustomResourceDefinitionStatus};
use apiloom_meta::kind::StoredDefinition;
use apiloom_meta::{ApiError, Conditions as _, ObjectMeta, Resource as _};
use apiloom_registry::{Document, Endpoint, Registry};
use apiloom_server::host::{
    Follower, OtherServers, RequestError, Requests, SharedStore, UnreadableLog, Update, read_all,
};
use bytes::Bytes;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::cleanup::Deletion;
use self::known::Known;
use self::publish::{Publisher, Schemas};
use self::status::{AGAIN, StatusPatch};
use crate::webhooks::Webhooks;

pub(super) use self::progress::{NameCheck, Progress};

/// The manager of fields that the controller writes.
pub(super) const NAME: &str = "definition-controller";

/// Number of statuses that are written at the same time.
const WRITES: usize = 64;

/// The endpoint of definitions, if the server has them.
fn endpoint(registry: &Registry) -> Option<Arc<Endpoint>> {
    registry.endpoint(
        CustomResourceDefinition::GROUP,
        CustomResourceDefinition::VERSION,
        CustomResourceDefinition::PLURAL,
    )
}

/// Publishes the kinds of all stored definitions whose names are accepted, before the server is ready.
///
/// # Errors
/// If the definitions cannot be read.
pub(super) async fn publish_stored(
    registry: &Arc<Registry>,
    webhooks: &Webhooks,
) -> Result<(), ApiError> {
    let Some(endpoint) = endpoint(registry) else {
        return Ok(());
    };
    // One that cannot be read does not keep the others from being served.
    let stored = read_all(endpoint, |endpoint, document| {
        let (name, read) = read(endpoint, document)?;
        Some((name, (read.known, read.definition)))
    });
    let (mut stored, problem) = stored.await?;
    UnreadableLog::default().note(CustomResourceDefinition::KIND, problem.as_deref());
    let mut publisher = Publisher::new(Arc::clone(registry), webhooks.clone());
    // If there is not enough room for all, the older ones have it.
    stored.sort_by_key(|(known, _)| known.created);
    for (known, definition) in stored {
        let schemas = if known.is_refused {
            Schemas::Checked
        } else {
            Schemas::Trusted
        };
        publisher.observe(&known, &definition, schemas);
    }
    publisher.publish().await;
    Ok(())
}

fn warn_unreadable(error: &ApiError) {
    tracing::warn!(%error, "a CustomResourceDefinition cannot be read; its kind is not served");
}

/// A definition, whose schemas share the bytes of the watch cache.
fn definition_of(endpoint: &Endpoint, document: &Document) -> Result<StoredDefinition, ApiError> {
    let json = match document {
        Document::Encoded(encoded) => encoded.shared(),
        Document::Converted(_) | Document::Decoded(_) => {
            let json = document.json(endpoint.schema());
            Bytes::copy_from_slice(json.whole())
        }
    };
    StoredDefinition::parse(&json).map_err(|error| ApiError::internal(error.to_string()))
}

/// A definition as the controller reads it.
struct ReadDefinition {
    known: Known,
    object: CustomResourceDefinition,
    definition: StoredDefinition,
}

/// Reads a definition, by its name.
fn read(endpoint: &Endpoint, document: &Document) -> Option<(String, ReadDefinition)> {
    let definition = definition_of(endpoint, document).inspect_err(warn_unreadable);
    let definition = definition.ok()?;
    let object = known::object_of(&definition);
    let known = Known::of_object(&object);
    let name = known.name.clone();
    let read = ReadDefinition {
        known,
        object,
        definition,
    };
    Some((name, read))
}

/// Runs the controller; never returns while the server has definitions.
pub(super) async fn run(requests: Requests, shared: Option<&SharedStore>, webhooks: &Webhooks) {
    let Some(endpoint) = endpoint(requests.registry()) else {
        return;
    };
    let mut controller = Controller {
        publisher: Publisher::new(Arc::clone(requests.registry()), webhooks.clone()),
        requests,
        shared,
        known: HashMap::new(),
        unfinished: HashMap::new(),
        queue: VecDeque::new(),
        unreadable: UnreadableLog::default(),
        cleanups: JoinSet::new(),
        in_cleanup: HashSet::new(),
    };
    controller.follow(Follower::new(endpoint, read)).await;
}

/// A definition whose status is to be changed, without its schemas.
struct PendingDefinition {
    object: CustomResourceDefinition,
    /// As it was stored; `None` if it was read by a request.
    definition: Option<StoredDefinition>,
}

/// A change of the status of a definition.
struct Change {
    name: String,
    work: Box<PendingDefinition>,
    /// The status before.
    status: CustomResourceDefinitionStatus,
    /// The definition with the names that it had, if it got others.
    known: Option<Box<Known>>,
}

/// The controller of CustomResourceDefinitions.
struct Controller<'a> {
    requests: Requests,
    shared: Option<&'a SharedStore>,
    publisher: Publisher,
    /// The definitions by name, as they were last seen.
    known: HashMap<String, Box<Known>>,
    /// Those of them whose status is to be changed. A definition that is idle is not among them.
    unfinished: HashMap<String, Box<PendingDefinition>>,
    /// The names of definitions to look at, and when.
    queue: VecDeque<(Instant, String)>,
    unreadable: UnreadableLog,
    /// The deletions of the objects of definitions that are being deleted; each returns its name.
    cleanups: JoinSet<String>,
    in_cleanup: HashSet<String>,
}

impl Controller<'_> {
    /// Follows the definitions.
    async fn follow(&mut self, mut follower: Follower<String, ReadDefinition>) {
        loop {
            let at = self.queue.iter().map(|(at, _)| *at).min();
            let at = at.filter(|_| follower.is_complete());
            tokio::select! {
                biased;
                update = follower.next() => {
                    self.take(update);
                    // Changes of the catalog are published together.
                    if follower.is_ready() {
                        continue;
                    }
                }
                Some(ended) = self.cleanups.join_next(), if !self.cleanups.is_empty() => {
                    if let Ok(name) = ended {
                        self.in_cleanup.remove(&name);
                        self.look_at(name, Duration::ZERO);
                    }
                }
                () = tokio::time::sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => {}
            }
            if follower.is_complete() {
                self.unreadable
                    .note(CustomResourceDefinition::KIND, follower.unreadable());
                self.publish().await;
                self.look_at_due().await;
                // The next watch shows those that wait for room.
                if self.publisher.has_room_again() {
                    follower.begin_again();
                }
            }
        }
    }

    /// Publishes what was noted, and looks at the definitions whose kinds were published or refused.
    async fn publish(&mut self) {
        for name in self.publisher.publish().await {
            self.look_at(name, Duration::ZERO);
        }
    }

    /// Notes what the follower tells.
    fn take(&mut self, update: Update<String, ReadDefinition>) {
        match update {
            Update::Added(read) | Update::Modified(read) => self.observe(read),
            Update::Deleted(name) => self.forget(&name),
            Update::Complete(listed) => {
                let gone = self.known.keys().filter(|name| !listed.contains(*name));
                let gone: Vec<String> = gone.cloned().collect();
                gone.iter().for_each(|name| self.forget(name));
                let known = self.known.values();
                let resources = known.map(|known| known.resource()).collect();
                self.publisher.remove_all_but(&resources);
            }
            Update::Ended(Some(error)) => {
                tracing::warn!(%error, "cannot follow CustomResourceDefinitions");
            }
            Update::Begun | Update::Alive | Update::Ended(None) => {}
        }
    }

    /// Notes the present state of a definition.
    fn observe(&mut self, read: ReadDefinition) {
        let ReadDefinition {
            known,
            object,
            definition,
        } = read;
        let name = known.name.clone();
        let is_newer =
            |present: &Known| present.uid != known.uid || present.version <= known.version;
        let present = self.known.get(&name).map(|present| &**present);
        if !present.is_none_or(is_newer) {
            return;
        }
        let before = self.known.insert(name.clone(), Box::new(known));
        let known = &self.known[&name];
        self.publisher.observe(known, &definition, Schemas::Checked);
        let before = before.map(|before| before.accepted);
        if before.as_ref() != Some(&known.accepted) {
            let others = self.known.values();
            let contested = others.filter(|other| known.contests(other));
            let contested: Vec<String> = contested.map(|other| other.name.clone()).collect();
            let group = known.group.clone();
            for name in contested {
                self.look_at(name, Duration::ZERO);
            }
            // Others may get the names that it had.
            if before.is_some() {
                self.look_at_group(&group, Duration::ZERO);
            }
        }
        self.keep(name, object, definition);
    }

    /// Keeps a definition that was just seen until its status was looked at, unless that would stay as it is.
    fn keep(
        &mut self,
        name: String,
        object: CustomResourceDefinition,
        definition: StoredDefinition,
    ) {
        let known = &self.known[&name];
        let is_installed = known.has_all_names && known.is_established && !known.is_deleting;
        if is_installed && self.publisher.serves(known) {
            let mut changed = object.clone();
            let catalog = self.requests.registry().catalog();
            names::accept(&mut changed, &self.known, &catalog);
            status::judge(&mut changed, self.publisher.problem(&name));
            if changed.status == object.status {
                self.unfinished.remove(&name);
                return;
            }
        }
        let definition = Some(definition);
        let kept = Box::new(PendingDefinition { object, definition });
        self.unfinished.insert(name.clone(), kept);
        self.look_at(name, Duration::ZERO);
    }

    /// Forgets a definition that was deleted. Others may get its names.
    fn forget(&mut self, name: &str) {
        if let Some(known) = self.known.remove(name) {
            self.unfinished.remove(name);
            self.publisher.remove(&known);
            self.look_at_group(&known.group, Duration::ZERO);
        }
    }

    /// Looks at the definitions of a group that lack names.
    fn look_at_group(&mut self, group: &str, after: Duration) {
        let waiting = self.known.values();
        let waiting = waiting.filter(|known| known.group == group && !known.has_all_names);
        let names: Vec<String> = waiting.map(|known| known.name.clone()).collect();
        for name in names {
            self.look_at(name, after);
        }
    }

    fn look_at(&mut self, name: String, after: Duration) {
        let at = Instant::now() + after;
        match self.queue.iter_mut().find(|(_, queued)| *queued == name) {
            Some((queued, _)) => *queued = at.min(*queued),
            None => self.queue.push_back((at, name)),
        }
    }

    async fn look_at_due(&mut self) {
        let now = Instant::now();
        let (due, later) = self.queue.drain(..).partition(|(at, _)| *at <= now);
        let due: VecDeque<(Instant, String)> = due;
        self.queue = later;
        let mut changes = Vec::new();
        for (_, name) in due {
            match self.begin(&name).await {
                Ok(change) => changes.extend(change),
                Err(error) => self.put_off(name, &error),
            }
        }
        let installs = |change: &Change| status::is_installing(&change.work.object);
        let others = match self.shared {
            Some(shared) if changes.iter().any(installs) => shared.other_servers().await,
            Some(_) | None => OtherServers::None,
        };
        if others == OtherServers::None {
            self.publish_accepted(&mut changes).await;
        }
        self.end(changes, others).await;
    }

    /// Gives a definition its names, as far as they are free; `None` if its status is left alone.
    async fn begin(&mut self, name: &str) -> Result<Option<Change>, RequestError> {
        let Some(known) = self.known.get(name) else {
            return Ok(None);
        };
        if known.is_deleting {
            let uid = known.uid.clone();
            self.clean_up(name, uid);
            return Ok(None);
        }
        let kept = self.unfinished.remove(name);
        if self.unfinished.is_empty() {
            // An idle definition needs no room in it.
            self.unfinished = HashMap::new();
        }
        let mut work = if let Some(kept) = kept {
            kept
        } else {
            let path = known::path(name);
            let Some(object) = self.requests.get(&path).await? else {
                return Ok(None);
            };
            Box::new(PendingDefinition {
                object,
                definition: None,
            })
        };
        let status = work.object.status.clone();
        let catalog = self.requests.registry().catalog();
        names::accept(&mut work.object, &self.known, &catalog);
        let mut present = None;
        if work.object.status != status {
            // The next definition must not get these names.
            let given = Box::new(Known::of_object(&work.object));
            present = self.known.insert(name.to_owned(), given);
        }
        Ok(Some(Change {
            name: name.to_owned(),
            work,
            status,
            known: present,
        }))
    }

    /// Publishes the kinds of definitions that just got all their names, before these are stored: one write can say then that
    /// they are established. Other servers would not serve them yet, so there are none.
    async fn publish_accepted(&mut self, changes: &mut [Change]) {
        for change in changes.iter_mut().filter(|change| change.known.is_some()) {
            let PendingDefinition { object, definition } = &mut *change.work;
            if let Some(definition) = definition
                && status::is_installing(object)
                && let Some(known) = self.known.get(&change.name)
            {
                definition.set_accepted_names(json!(object.status.accepted_names));
                self.publisher.observe(known, definition, Schemas::Checked);
            }
        }
        for name in self.publisher.publish().await {
            if !changes.iter().any(|change| change.name == name) {
                self.look_at(name, Duration::ZERO);
            }
        }
    }

    /// Completes the changes and writes them, some at the same time: they share the waiting for a disk.
    async fn end(&mut self, changes: Vec<Change>, others: OtherServers) {
        let mut writes = JoinSet::new();
        let slots = Arc::new(Semaphore::new(WRITES));
        for mut change in changes {
            let object = &mut change.work.object;
            status::judge(object, self.publisher.problem(&change.name));
            let again = if status::is_installing(object)
                && self.publisher.serves(&Known::of_object(object))
            {
                status::establish(object, others)
            } else {
                None
            };
            if let Some(after) = again {
                self.look_at(change.name.clone(), after);
            }
            let Some(patch) = StatusPatch::new(&change.status, object) else {
                self.keep_unfinished(change);
                continue;
            };
            let (requests, slots) = (self.requests.clone(), Arc::clone(&slots));
            writes.spawn(async move {
                let _slot = slots.acquire_owned().await;
                (change, patch.write(requests).await)
            });
        }
        while let Some(written) = writes.join_next().await {
            match written {
                Ok((change, Ok(written))) => self.written(change, written),
                Ok((change, Err(error))) => self.not_written(change, &error),
                // The program has an error. The events of the definition are still seen.
                Err(error) => tracing::error!(%error, "a definition is not updated"),
            }
        }
        // Kinds whose names could not be stored are taken back.
        self.publish().await;
    }

    /// Notes the metadata of a definition whose status was written; `None` if it is gone.
    fn written(&mut self, mut change: Change, metadata: Option<ObjectMeta>) {
        let Some(metadata) = metadata else { return };
        change.work.object.metadata.resource_version = metadata.resource_version;
        // The watch shows this write later.
        let known = Box::new(Known::of_object(&change.work.object));
        self.known.insert(change.name.clone(), known);
        self.keep_unfinished(change);
    }

    /// Takes the names of a definition back whose status could not be written. If that is because the definition has changed, they
    /// are kept for it until the watch shows the change: its kind may be served, and then it may have objects, which are deleted
    /// with it.
    fn not_written(&mut self, change: Change, error: &RequestError) {
        if error.is_conflict() {
            return;
        }
        if let Some(known) = change.known {
            let group = known.group.clone();
            self.publisher.withdraw(&known);
            self.known.insert(change.name.clone(), known);
            self.put_off(change.name, error);
            self.look_at_group(&group, AGAIN);
        } else {
            self.put_off(change.name, error);
        }
    }

    fn put_off(&mut self, name: String, error: &RequestError) {
        if !error.is_conflict() {
            tracing::debug!(%error, definition = %name, "to be tried again");
        }
        self.look_at(name, AGAIN);
    }

    /// Keeps a definition that is to be changed again.
    fn keep_unfinished(&mut self, change: Change) {
        let conditions = &change.work.object.status.conditions;
        let is_finished = conditions.is_condition_true("NamesAccepted")
            && conditions.is_condition_true("Established");
        if !is_finished {
            self.unfinished.insert(change.name, change.work);
        }
    }

    /// Begins to delete the objects of a definition that is being deleted.
    fn clean_up(&mut self, name: &str, uid: String) {
        if self.in_cleanup.insert(name.to_owned()) {
            let (requests, shared) = (self.requests.clone(), self.shared.cloned());
            let deletion = Deletion {
                name: name.to_owned(),
                uid,
                is_refused: self.publisher.problem(name).is_some(),
            };
            self.cleanups.spawn(async move {
                cleanup::run(&requests, shared.as_ref(), &deletion).await;
                deletion.name
            });
        }
    }
}
