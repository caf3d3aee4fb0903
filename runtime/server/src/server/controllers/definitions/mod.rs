//! Serves the kinds of CustomResourceDefinitions: accepts their names, publishes them, and deletes their objects with them.
//!
//! Every server over a store does so by itself: it publishes what it watches, and writes conditions with the resourceVersion
//! that it read, so that one of several servers succeeds. The rules, conditions and messages are those of kube-apiserver.

mod cleanup;
mod known;
mod names;
mod progress;
mod publish;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use apiloom_apis::apiextensions::v1::CustomResourceDefinition;
use apiloom_meta::kind::StoredDefinition;
use apiloom_meta::{ApiError, Resource as _, Time};
use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::cleanup::Deletion;
use self::known::Known;
use self::publish::{Publisher, Schemas};
use super::requests::{RequestError, Requests};
use super::servers::{OtherServers, SharedStore};
use super::watch::watch_all;
use crate::registry::definition_rules::{
    Approval, has_condition, has_invalid_authorities, is_protected, set_condition,
};
use crate::registry::{
    Document, Endpoint, ListOptions, Registry, RequestContext, WatchEvent, WatchEventKind,
};
use crate::server::webhooks::Webhooks;

pub(in crate::server) use self::progress::{NameCheck, Progress};

/// The manager of fields that the controller writes.
pub(super) const NAME: &str = "definition-controller";

/// Time between attempts to watch the definitions.
const RETRY: Duration = Duration::from_secs(1);

/// Time after which a failed write is repeated.
const AGAIN: Duration = Duration::from_millis(100);

/// Time between the acceptance of names and the end of the installation with several servers, as in kube-apiserver: until then
/// the others serve the kind too.
const INSTALLATION: Duration = Duration::from_secs(5);

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
pub(in crate::server) async fn publish_stored(
    registry: &Arc<Registry>,
    webhooks: &Webhooks,
) -> Result<(), ApiError> {
    let Some(endpoint) = endpoint(registry) else {
        return Ok(());
    };
    let ctx = RequestContext::default();
    let listed = endpoint
        .reads()
        .list(&ctx, None, &ListOptions::default())
        .await?;
    let mut publisher = Publisher::new(Arc::clone(registry), webhooks.clone());
    for item in listed.items {
        let definition = definition_of(&endpoint, &item?)?;
        let known = Known::of(&definition);
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
        queue: VecDeque::new(),
        cleanups: JoinSet::new(),
        in_cleanup: HashSet::new(),
    };
    loop {
        if let Err(error) = controller.follow(&endpoint).await {
            tracing::warn!(%error, "cannot follow CustomResourceDefinitions");
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// The controller of CustomResourceDefinitions.
struct Controller<'a> {
    requests: Requests,
    shared: Option<&'a SharedStore>,
    publisher: Publisher,
    /// The definitions by name, as they were last seen.
    known: HashMap<String, Box<Known>>,
    /// The names of definitions to look at, and when.
    queue: VecDeque<(Instant, String)>,
    /// The deletions of the objects of definitions that are being deleted; each returns its name.
    cleanups: JoinSet<String>,
    in_cleanup: HashSet<String>,
}

impl Controller<'_> {
    /// Follows the definitions until their watch ends.
    async fn follow(&mut self, endpoint: &Endpoint) -> Result<(), ApiError> {
        let mut events = watch_all(endpoint).await?;
        let mut listed = Some(HashSet::new());
        loop {
            let at = self.queue.iter().map(|(at, _)| *at).min();
            let at = at.filter(|_| listed.is_none());
            tokio::select! {
                biased;
                event = events.next() => {
                    let Some(event) = event else { return Ok(()) };
                    self.take(endpoint, event?, &mut listed)?;
                    // Changes of the catalog are published together.
                    if events.is_ready() {
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
            if listed.is_none() {
                for name in self.publisher.publish().await {
                    self.look_at(name, Duration::ZERO);
                }
                self.look_at_due().await;
            }
        }
    }

    /// Notes an event; `listed` has the names of the initial ones, until all were read.
    fn take(
        &mut self,
        endpoint: &Endpoint,
        event: WatchEvent,
        listed: &mut Option<HashSet<String>>,
    ) -> Result<(), ApiError> {
        if event.kind == WatchEventKind::Bookmark {
            if let Some(listed) = listed.take() {
                let gone = self.known.keys().filter(|name| !listed.contains(*name));
                let gone: Vec<String> = gone.cloned().collect();
                gone.iter().for_each(|name| self.forget(name));
                let known = self.known.values();
                let resources = known.map(|known| known.resource()).collect();
                self.publisher.remove_all_but(&resources);
            }
            return Ok(());
        }
        let definition = definition_of(endpoint, &event.object)?;
        let known = Known::of(&definition);
        let name = known.name.clone();
        if event.kind == WatchEventKind::Deleted {
            self.forget(&name);
            return Ok(());
        }
        if let Some(listed) = listed {
            listed.insert(name.clone());
        }
        let is_newer =
            |present: &Known| present.uid != known.uid || present.version <= known.version;
        let present = self.known.get(&name).map(|present| &**present);
        if !present.is_none_or(is_newer) {
            return Ok(());
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
                self.look_at_group(&group);
            }
        }
        self.look_at(name, Duration::ZERO);
        Ok(())
    }

    /// Forgets a definition that was deleted. Others may get its names.
    fn forget(&mut self, name: &str) {
        if let Some(known) = self.known.remove(name) {
            self.publisher.remove(&known);
            self.look_at_group(&known.group);
        }
    }

    /// Looks at the definitions of a group that lack names.
    fn look_at_group(&mut self, group: &str) {
        let waiting = self.known.values();
        let waiting = waiting.filter(|known| known.group == group && !known.has_all_names);
        let names: Vec<String> = waiting.map(|known| known.name.clone()).collect();
        for name in names {
            self.look_at(name, Duration::ZERO);
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
        for (_, name) in due {
            match self.update(&name).await {
                Ok(None) => {}
                Ok(Some(after)) => self.look_at(name, after),
                Err(error) => {
                    if !error.is_conflict() {
                        tracing::debug!(%error, definition = %name, "to be tried again");
                    }
                    self.look_at(name, AGAIN);
                }
            }
        }
    }

    /// Updates the status of a definition; returns when to look at it again.
    async fn update(&mut self, name: &str) -> Result<Option<Duration>, RequestError> {
        let Some(known) = self.known.get(name) else {
            return Ok(None);
        };
        if known.is_deleting {
            let uid = known.uid.clone();
            self.clean_up(name, uid);
            return Ok(None);
        }
        let path = known::path(name);
        let Some(mut object) = self.requests.get::<CustomResourceDefinition>(&path).await? else {
            return Ok(None);
        };
        let before = object.status.clone();
        let catalog = self.requests.registry().catalog();
        names::accept(&mut object, &self.known, &catalog);
        self.judge(&mut object);
        let again = self.establish(&mut object).await;
        if object.status != before {
            let status = format!("{path}/status");
            let written = self.requests.put(&status, &object).await?;
            let Some(written) = written else {
                return Ok(None);
            };
            // Other definitions must not get the names before the watch shows this write.
            self.known
                .insert(name.to_owned(), Box::new(Known::of_object(&written)));
        }
        Ok(again)
    }

    /// Sets the conditions about the schemas and the approval.
    fn judge(&self, object: &mut CustomResourceDefinition) {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let problem = self.publisher.problem(name);
        let conditions = &mut object.status.conditions;
        let was_refused = conditions
            .iter()
            .flatten()
            .any(|one| one.condition_type == "NonStructuralSchema");
        match problem {
            Some(problem) => {
                set_condition(
                    conditions,
                    ("NonStructuralSchema", true),
                    "Violations",
                    problem,
                );
            }
            None if was_refused => {
                let conditions = conditions.get_or_insert_default();
                conditions.retain(|one| one.condition_type != "NonStructuralSchema");
            }
            None => {}
        }
        if !is_protected(&object.spec.group) {
            return;
        }
        let approval = Approval::of(&object.metadata);
        let annotation = object
            .metadata
            .annotations
            .get(crate::registry::definition_rules::APPROVAL);
        let annotation = annotation.cloned().unwrap_or_default();
        let (is_approved, reason, message) = match &approval {
            Approval::Approved => (
                true,
                "ApprovedAnnotation",
                format!("approved in {annotation}"),
            ),
            Approval::Bypassed => (
                false,
                "UnapprovedAnnotation",
                format!("not approved: {annotation:?}"),
            ),
            Approval::Missing => (
                false,
                "MissingAnnotation",
                approval.problem().unwrap_or_default(),
            ),
            Approval::Invalid(_) => (
                false,
                "InvalidAnnotation",
                approval.problem().unwrap_or_default(),
            ),
        };
        let condition = ("KubernetesAPIApprovalPolicyConformant", is_approved);
        set_condition(&mut object.status.conditions, condition, reason, &message);
    }

    /// Sets the condition Established of a definition whose names are accepted, once its kind is served; returns when to look
    /// again.
    async fn establish(&self, object: &mut CustomResourceDefinition) -> Option<Duration> {
        let conditions = &object.status.conditions;
        if has_condition(conditions, "Established") || !has_condition(conditions, "NamesAccepted") {
            return None;
        }
        let known = Known::of_object(object);
        if !self.publisher.serves(&known) {
            return None;
        }
        let others = match self.shared {
            Some(shared) => shared.other_servers().await,
            None => OtherServers::None,
        };
        if others == OtherServers::NotYetKnown {
            return Some(AGAIN);
        }
        if others == OtherServers::Some {
            let accepted = conditions.iter().flatten();
            let mut accepted = accepted.filter(|one| one.condition_type == "NamesAccepted");
            let since = accepted.next().and_then(|one| one.last_transition_time);
            let since = since.map_or(Duration::ZERO, |at| Time::now().duration_since(at));
            let rest = INSTALLATION.saturating_sub(since);
            if !rest.is_zero() {
                return Some(rest);
            }
        }
        if has_invalid_authorities(object) {
            set_condition(
                &mut object.status.conditions,
                ("Established", false),
                "InvalidCABundle",
                "The conversion webhook CABundle is invalid",
            );
            return None;
        }
        set_condition(
            &mut object.status.conditions,
            ("Established", true),
            "InitialNamesAccepted",
            "the initial names have been accepted",
        );
        None
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
