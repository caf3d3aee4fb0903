//! Decides which objects are deleted because of their owners, and deletes them.
//!
//! The graph says which objects to look at; what is done is decided by the state in the store, and every write has that
//! state as its precondition. So a collector that knows too little, or is stopped in the middle, deletes nothing that
//! has an owner.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use apiloom_client::controller::WorkQueue;
use apiloom_meta::{ObjectMeta, OwnerReference};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::server::controllers::feed::{FOREGROUND, ORPHAN, Sink, finalizer, reference};
use crate::server::controllers::graph::{Finalizer, Graph, Known, Observed, Place, Work};
use crate::server::controllers::requests::{RequestError, Requests, Served};
use crate::server::controllers::uid::Uid;

/// How many references to an owner are removed at the same time: with all workers less than the limit of writes.
const ORPHANED_AT_ONCE: usize = 4;

/// How often an object is deleted that changes all the time.
const DELETE_ATTEMPTS: usize = 5;

/// Number of absent owners that are remembered: enough for the dependents of an owner, which are judged one after the
/// other.
const ABSENT_OWNERS: usize = 500;

/// See the module.
pub(super) struct Collector {
    requests: Requests,
    graph: Mutex<Graph>,
    queue: WorkQueue<Work>,
    absent: Mutex<AbsentOwners>,
    /// Whether the objects of each kind are known.
    feeds: Mutex<Vec<watch::Receiver<bool>>>,
}

/// An owner, as a reference of a dependent says.
enum Owner {
    /// It exists.
    Present,
    /// It is being deleted, after its dependents.
    WaitsForDependents,
    Absent,
    /// The reference is none that an owner could have, so nothing follows from it.
    Impossible,
}

impl Collector {
    pub(super) fn new(requests: Requests) -> Self {
        Self {
            requests,
            graph: Mutex::default(),
            queue: WorkQueue::new(),
            absent: Mutex::default(),
            feeds: Mutex::default(),
        }
    }

    pub(super) fn set_feeds(&self, feeds: Vec<watch::Receiver<bool>>) {
        *self.feeds.lock() = feeds;
    }

    /// Fails while the objects of a kind are not known: some may be dependents. What follows from their absence waits.
    fn check_is_complete(&self) -> Result<(), RequestError> {
        let is_complete = self.feeds.lock().iter().all(|synced| *synced.borrow());
        is_complete.then_some(()).ok_or(RequestError::NotListed)
    }

    pub(super) fn queue(&self) -> &WorkQueue<Work> {
        &self.queue
    }

    /// Changes the graph, and adds the work that follows to the queue.
    fn change(&self, change: impl FnOnce(&mut Graph)) {
        let mut graph = self.graph.lock();
        change(&mut graph);
        let outcome = graph.take_outcome();
        drop(graph);
        for work in outcome.work {
            self.queue.add(work);
        }
        for foreign in outcome.foreign {
            let (dependent, owner) = (foreign.dependent.1, foreign.reference);
            tracing::debug!(
                ?dependent,
                ?owner,
                "an owner reference names an owner in another namespace, which is none"
            );
        }
    }

    /// Does a piece of work. On an error it is to be done again.
    pub(super) async fn process(&self, work: Work) -> Result<(), RequestError> {
        match work {
            Work::Judge(uid) => self.judge(uid).await,
            Work::Orphan(uid) => self.orphan_dependents(uid).await,
        }
    }

    /// The place of an object in the store, and its metadata; `None` if it does not exist any more.
    async fn latest(
        &self,
        uid: Uid,
        place: &Place,
    ) -> Result<Option<(String, ObjectMeta)>, RequestError> {
        let served = self.requests.served(&place.group, &place.kind)?;
        let path = served.object(&place.namespace, &place.name)?;
        let latest = self.requests.metadata(&path).await?;
        match latest.filter(|latest| has_uid(latest, uid)) {
            Some(latest) => Ok(Some((path, latest))),
            None => {
                self.change(|graph| graph.remove(uid));
                Ok(None)
            }
        }
    }

    /// Deletes an object without owners, or takes what is no owner out of its references; or completes its own
    /// foreground deletion.
    async fn judge(&self, uid: Uid) -> Result<(), RequestError> {
        let Some(known) = self.graph.lock().get(uid) else {
            return Ok(());
        };
        if known.is_deleting && !known.is_foreground {
            return Ok(());
        }
        let Some((path, latest)) = self.latest(uid, &known.place).await? else {
            return Ok(());
        };
        if known.is_foreground {
            return self.complete_foreground(uid, &path, &latest).await;
        }
        // Its event is on the way.
        if latest.deletion_timestamp.is_some() {
            return Ok(());
        }
        let mut owners = Vec::new();
        for owner in &latest.owner_references {
            match self.owner(owner, &known.place.namespace).await? {
                Owner::Impossible => return Ok(()),
                found => owners.push((owner, found)),
            }
        }
        if owners.is_empty() {
            return Ok(());
        }
        let present = owners
            .iter()
            .filter(|(_, owner)| matches!(owner, Owner::Present));
        let present: Vec<&OwnerReference> = present.map(|(reference, _)| *reference).collect();
        if present.len() == owners.len() {
            return self.check_are_followed(&present);
        }
        if !present.is_empty() {
            let patch = json!({"metadata": {"resourceVersion": latest.resource_version, "ownerReferences": present}});
            return self.requests.merge(&path, &patch).await.map(drop);
        }
        let is_awaited = owners
            .iter()
            .any(|(_, owner)| matches!(owner, Owner::WaitsForDependents));
        let dependents = self.graph.lock().dependents(uid);
        let policy = if is_awaited && !dependents.is_empty() {
            // In a circle each object would wait for the other.
            if dependents
                .iter()
                .any(|(_, dependent)| dependent.is_foreground)
            {
                let Some(latest) = self.stop_blocking(&path, &latest).await? else {
                    return Ok(());
                };
                return self.delete(uid, &path, latest, "Foreground").await;
            }
            "Foreground"
        } else {
            match finalizer(&latest.finalizers) {
                Some(Finalizer::Orphan) => "Orphan",
                Some(Finalizer::Foreground) => "Foreground",
                None => "Background",
            }
        };
        self.delete(uid, &path, latest, policy).await
    }

    /// Fails if an owner was not observed, so that its end would not be: its dependents are judged again later.
    fn check_are_followed(&self, owners: &[&OwnerReference]) -> Result<(), RequestError> {
        let graph = self.graph.lock();
        let is_observed = |owner: &&OwnerReference| graph.get(Uid::of(&owner.uid)).is_some();
        let mut missing = owners.iter().filter(|owner| !is_observed(owner));
        match missing.next() {
            None => Ok(()),
            Some(owner) => Err(RequestError::NotObserved(owner.name.clone())),
        }
    }

    /// What a reference of an object in a namespace refers to.
    async fn owner(&self, owner: &OwnerReference, namespace: &str) -> Result<Owner, RequestError> {
        let edge = reference(owner);
        let served: Served = self.requests.served(&edge.group, &edge.kind)?;
        if served.is_namespaced && namespace.is_empty() {
            return Ok(Owner::Impossible);
        }
        let namespace = if served.is_namespaced { namespace } else { "" };
        // No object has a name that cannot be a part of a path.
        let Ok(path) = served.object(namespace, &owner.name) else {
            return Ok(Owner::Impossible);
        };
        let absent = (edge.uid, path);
        if self.absent.lock().contains(&absent) {
            return Ok(Owner::Absent);
        }
        let found = self.requests.metadata(&absent.1).await?;
        Ok(match found.filter(|found| has_uid(found, edge.uid)) {
            None => {
                self.absent.lock().insert(absent);
                Owner::Absent
            }
            Some(found) => {
                let is_deleting = found.deletion_timestamp.is_some();
                let is_foreground = found.finalizers.iter().any(|name| name == FOREGROUND);
                if is_deleting && is_foreground {
                    Owner::WaitsForDependents
                } else {
                    Owner::Present
                }
            }
        })
    }

    /// Removes the finalizer of a foreground deletion if no dependent is left to wait for; otherwise judges those.
    async fn complete_foreground(
        &self,
        uid: Uid,
        path: &str,
        latest: &ObjectMeta,
    ) -> Result<(), RequestError> {
        let blocking = self.graph.lock().blocking_dependents(uid);
        if blocking.is_empty() {
            self.check_is_complete()?;
            return self.remove_finalizer(path, latest, FOREGROUND).await;
        }
        let waits = |(_, dependent): &&(Uid, Known)| !dependent.is_foreground;
        for (dependent, _) in blocking.iter().filter(waits) {
            self.queue.add(Work::Judge(*dependent));
        }
        Ok(())
    }

    /// Makes an object block none of its owners.
    async fn stop_blocking(
        &self,
        path: &str,
        latest: &ObjectMeta,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let mut owners = latest.owner_references.clone();
        for owner in &mut owners {
            owner.block_owner_deletion = Some(false);
        }
        let patch = json!({"metadata": {"resourceVersion": latest.resource_version, "ownerReferences": owners}});
        self.requests.merge(path, &patch).await
    }

    /// Deletes an object in the state that was judged. If only other things than its owners have changed since, in that
    /// of now.
    async fn delete(
        &self,
        uid: Uid,
        path: &str,
        judged: ObjectMeta,
        policy: &str,
    ) -> Result<(), RequestError> {
        let mut latest = judged.clone();
        for _ in 0..DELETE_ATTEMPTS {
            let preconditions =
                json!({"uid": latest.uid, "resourceVersion": latest.resource_version});
            let options = json!({"preconditions": preconditions, "propagationPolicy": policy});
            let error = match self.requests.delete(path, options).await {
                Err(error) if error.is_conflict() => error,
                done => return done,
            };
            let now = self.requests.metadata(path).await?;
            match now.filter(|now| has_uid(now, uid)) {
                None => return Ok(()),
                Some(now) if now.owner_references == judged.owner_references => latest = now,
                Some(_) => return Err(error),
            }
        }
        Err(RequestError::Busy(path.to_owned()))
    }

    /// Removes the references of all dependents to an object, then its finalizer.
    async fn orphan_dependents(&self, uid: Uid) -> Result<(), RequestError> {
        self.check_is_complete()?;
        let (known, dependents) = {
            let graph = self.graph.lock();
            let Some(known) = graph.get(uid) else {
                return Ok(());
            };
            (known, graph.dependents(uid))
        };
        let removed = futures_util::stream::iter(dependents)
            .map(|(dependent, known)| self.disown(uid, dependent, known.place))
            .buffer_unordered(ORPHANED_AT_ONCE);
        // One that fails does not keep the others waiting.
        let results: Vec<Result<(), RequestError>> = removed.collect().await;
        results.into_iter().collect::<Result<(), RequestError>>()?;
        let Some((path, latest)) = self.latest(uid, &known.place).await? else {
            return Ok(());
        };
        self.remove_finalizer(&path, &latest, ORPHAN).await
    }

    /// Removes the reference of a dependent to an owner.
    async fn disown(&self, owner: Uid, dependent: Uid, place: Place) -> Result<(), RequestError> {
        let Some((path, latest)) = self.latest(dependent, &place).await? else {
            return Ok(());
        };
        let mut kept = latest.owner_references.clone();
        kept.retain(|reference| Uid::of(&reference.uid) != owner);
        if kept.len() == latest.owner_references.len() {
            return Ok(());
        }
        let kept = if kept.is_empty() {
            Value::Null
        } else {
            json!(kept)
        };
        let patch = json!({"metadata": {"resourceVersion": latest.resource_version, "ownerReferences": kept}});
        self.requests.merge(&path, &patch).await.map(drop)
    }

    async fn remove_finalizer(
        &self,
        path: &str,
        latest: &ObjectMeta,
        name: &str,
    ) -> Result<(), RequestError> {
        let mut kept = latest.finalizers.clone();
        kept.retain(|known| known != name);
        if kept.len() == latest.finalizers.len() {
            return Ok(());
        }
        let patch =
            json!({"metadata": {"resourceVersion": latest.resource_version, "finalizers": kept}});
        self.requests.merge(path, &patch).await.map(drop)
    }
}

impl Sink for Arc<Collector> {
    fn observe(&self, object: Observed) {
        self.change(|graph| graph.observe(object));
    }

    fn remove(&self, uid: Uid) {
        self.change(|graph| graph.remove(uid));
    }

    fn complete(&self, group: &str, kind: &str, listed: &HashSet<Uid>) {
        self.change(|graph| graph.retain(group, kind, listed));
    }
}

fn has_uid(object: &ObjectMeta, uid: Uid) -> bool {
    object
        .uid
        .as_deref()
        .is_some_and(|text| Uid::of(text) == uid)
}

/// The owners that were found absent last, by uid and path. A uid never comes back.
#[derive(Default)]
struct AbsentOwners {
    known: HashSet<(Uid, String)>,
    /// The same, oldest first.
    order: VecDeque<(Uid, String)>,
}

impl AbsentOwners {
    fn contains(&self, owner: &(Uid, String)) -> bool {
        self.known.contains(owner)
    }

    fn insert(&mut self, owner: (Uid, String)) {
        if !self.known.insert(owner.clone()) {
            return;
        }
        self.order.push_back(owner);
        if self.order.len() > ABSENT_OWNERS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}
