//! Decides which objects are deleted because of their owners, and deletes them.
//!
//! The graph says which objects to look at; what is done is decided by the state in the store, and every write has that
//! state as its precondition. So a collector that knows too little, or is stopped in the middle, deletes nothing that
//! has an owner.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::controller::{ObjectReference, WorkQueue};
use apiloom_meta::{ObjectMeta, OwnerReference};
use apiloom_registry::EndpointId;
use apiloom_server::host::feed::{FOREGROUND, ORPHAN, Sink, finalizer, reference};
use apiloom_server::host::{
    Finalizer, ObservedObject, Place, RequestError, Requests, ServedKind, Target, Uid,
};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::events::Events;
use super::progress::FeedProgress;
use crate::graph::{Graph, Known, Work};

/// How many references to an owner are removed at the same time: with all workers less than the limit of writes.
const ORPHANED_AT_ONCE: usize = 4;

/// Time from a foreground deletion that may close a circle to the search for circles.
const CIRCLES: Duration = Duration::from_secs(1);

/// The field of the metadata with the owners.
const OWNERS: &str = "ownerReferences";

/// How often an object is deleted that changes all the time.
const DELETE_ATTEMPTS: usize = 5;

/// Number of absent owners that are remembered: enough for the dependents of an owner, which are judged one after the
/// other.
const ABSENT_OWNERS: usize = 500;

/// The garbage collector: deletes the objects whose owners are gone.
pub(super) struct Collector {
    requests: Requests,
    followed: Mutex<FollowedGraph>,
    queue: WorkQueue<Work>,
    absent: Mutex<AbsentOwners>,
    progress: FeedProgress,
    events: Events,
}

/// The graph, and the feeds that may change it.
#[derive(Default)]
struct FollowedGraph {
    graph: Graph,
    feeds: HashSet<EndpointId>,
}

/// An owner, as a reference of a dependent says.
enum Owner {
    /// The owner exists.
    Present,
    /// The owner exists, but no feed follows its kind, which would report its deletion.
    Unfollowed,
    /// The owner is being deleted in the foreground: after its dependents.
    WaitsForDependents,
    Absent,
    /// An object of the cluster cannot have an owner in a namespace, so nothing follows from it.
    Impossible,
}

impl Collector {
    pub(super) fn new(requests: Requests) -> Self {
        Self {
            events: Events::new(&requests),
            requests,
            followed: Mutex::default(),
            queue: WorkQueue::new(),
            absent: Mutex::default(),
            progress: FeedProgress::default(),
        }
    }

    /// How far the feeds are.
    pub(super) fn progress(&self) -> &FeedProgress {
        &self.progress
    }

    /// Accepts the reports of a feed.
    pub(super) fn begin_feed(&self, feed: EndpointId) {
        self.followed.lock().feeds.insert(feed);
    }

    /// Accepts no more reports of a feed. If its kind (group, kind) is not served any more, its objects are removed from
    /// the graph: nothing is known about them.
    pub(super) fn end_feed(&self, feed: EndpointId, kind: Option<(&str, &str)>) {
        self.change(|followed| {
            followed.feeds.remove(&feed);
            if let Some((group, kind)) = kind {
                followed.graph.retain(group, kind, &HashSet::new());
            }
        });
    }

    pub(super) fn events(&self) -> &Events {
        &self.events
    }

    pub(super) fn queue(&self) -> &WorkQueue<Work> {
        &self.queue
    }

    /// Changes the graph, and adds the work that follows to the queue.
    fn change(&self, change: impl FnOnce(&mut FollowedGraph)) {
        let mut followed = self.followed.lock();
        change(&mut followed);
        let work = followed.graph.take_work();
        drop(followed);
        for work in work {
            match work {
                // All that begin meanwhile are looked at together.
                Work::BreakCircles => self.queue.add_after(work, CIRCLES),
                Work::Judge(_) | Work::Orphan(_) => self.queue.add(work),
            }
        }
    }

    /// Judges the objects that were put off because of the kinds that are served.
    pub(super) fn resume(&self) {
        self.change(|followed| followed.graph.resume());
    }

    /// Does a piece of work. On an error it is to be done again.
    pub(super) async fn process(&self, work: Work) -> Result<(), RequestError> {
        match work {
            Work::Judge(uid) => {
                let registry = self.requests.registry();
                let generation = registry.generation();
                match self.judge(uid).await {
                    Err(error) if error.is_lasting() => {
                        tracing::debug!(%error, ?work, "waits for other kinds");
                        self.change(|followed| followed.graph.postpone(uid));
                        // They may be served already.
                        if registry.generation() != generation {
                            self.queue.add(work);
                        }
                        Ok(())
                    }
                    result => result,
                }
            }
            Work::Orphan(uid) => self.orphan_dependents(uid).await,
            Work::BreakCircles => self.break_circles().await,
        }
    }

    /// An object, and its metadata in the store; `None` if it does not exist any more.
    async fn latest(
        &self,
        uid: Uid,
        place: &Place,
    ) -> Result<Option<(Target, ObjectMeta)>, RequestError> {
        let served = self.requests.served(&place.group, &place.kind)?;
        let target = served.target(&place.namespace, &place.name)?;
        let latest = self.requests.metadata(&target).await?;
        match latest.filter(|latest| has_uid(latest, uid)) {
            Some(latest) => Ok(Some((target, latest))),
            None => {
                self.change(|followed| followed.graph.remove(uid));
                Ok(None)
            }
        }
    }

    /// Deletes an object without owners, or takes what is no owner out of its references; or completes its own
    /// foreground deletion.
    async fn judge(&self, uid: Uid) -> Result<(), RequestError> {
        let Some(known) = self.followed.lock().graph.get(uid) else {
            return Ok(());
        };
        if known.is_deleting && !known.is_foreground {
            return Ok(());
        }
        let Some((target, latest)) = self.latest(uid, &known.place).await? else {
            return Ok(());
        };
        if known.is_foreground {
            return self.complete_foreground(uid, &target, &latest).await;
        }
        // Its event is on the way.
        if latest.deletion_timestamp.is_some() {
            return Ok(());
        }
        self.report_other_namespaces(&target, &known.place, &latest);
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
        let is_present = |owner: &Owner| matches!(owner, Owner::Present | Owner::Unfollowed);
        let present = owners.iter().filter(|(_, owner)| is_present(owner));
        let present: Vec<&OwnerReference> = present.map(|(reference, _)| *reference).collect();
        if present.len() == owners.len() {
            let followed = owners
                .iter()
                .filter(|(_, owner)| matches!(owner, Owner::Present));
            return self.check_are_observed(followed.map(|(reference, _)| *reference));
        }
        if !present.is_empty() {
            let present = json!(present);
            let set = self.requests.set(&target, &latest, OWNERS, present);
            return set.await.map(drop);
        }
        let is_awaited = owners
            .iter()
            .any(|(_, owner)| matches!(owner, Owner::WaitsForDependents));
        let dependents = self.followed.lock().graph.dependents(uid);
        let policy = if is_awaited && !dependents.is_empty() {
            // In a circle each object would wait for the other.
            if dependents
                .iter()
                .any(|(_, dependent)| dependent.is_foreground)
            {
                let Some(latest) = self.stop_blocking(&target, &latest, |_| true).await? else {
                    return Ok(());
                };
                return self.delete(uid, &target, latest, "Foreground").await;
            }
            "Foreground"
        } else {
            match finalizer(&latest.finalizers) {
                Some(Finalizer::Orphan) => "Orphan",
                Some(Finalizer::Foreground) => "Foreground",
                None => "Background",
            }
        };
        self.delete(uid, &target, latest, policy).await
    }

    /// Fails if an owner was not observed, so that its end would not be: its dependents are judged again later.
    fn check_are_observed<'a>(
        &self,
        mut owners: impl Iterator<Item = &'a OwnerReference>,
    ) -> Result<(), RequestError> {
        let followed = self.followed.lock();
        match owners.find(|owner| followed.graph.get(Uid::of(&owner.uid)).is_none()) {
            None => Ok(()),
            Some(owner) => Err(RequestError::NotObserved(owner.name.clone())),
        }
    }

    /// Records an event for each owner in another namespace, which is no owner.
    fn report_other_namespaces(&self, target: &Target, place: &Place, latest: &ObjectMeta) {
        let is_elsewhere = |owner: &&OwnerReference| {
            let known = self.followed.lock().graph.get(Uid::of(&owner.uid));
            known.is_some_and(|known| {
                let namespace = &known.place.namespace;
                !namespace.is_empty() && *namespace != place.namespace
            })
        };
        for owner in latest.owner_references.iter().filter(is_elsewhere) {
            let regarding = ObjectReference {
                api_version: target.api_version(),
                kind: place.kind.to_string(),
                namespace: place.namespace.to_string(),
                name: place.name.to_string(),
                uid: latest.uid.clone().unwrap_or_default(),
            };
            self.events.owner_in_other_namespace(regarding, owner);
        }
    }

    /// What a reference of an object in a namespace refers to.
    async fn owner(&self, owner: &OwnerReference, namespace: &str) -> Result<Owner, RequestError> {
        let edge = reference(owner);
        let served: ServedKind = self.requests.served(&edge.group, &edge.kind)?;
        if served.is_namespaced && namespace.is_empty() {
            return Ok(Owner::Impossible);
        }
        let namespace = if served.is_namespaced { namespace } else { "" };
        // No object has a name that cannot be a part of a path. kube-apiserver answers the request for it with 404.
        let Ok(target) = served.target(namespace, &owner.name) else {
            return Ok(Owner::Absent);
        };
        let absent = (edge.uid, target.path.clone());
        if self.absent.lock().contains(&absent) {
            return Ok(Owner::Absent);
        }
        let found = self.requests.metadata(&target).await?;
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
                } else if served.is_followed {
                    Owner::Present
                } else {
                    Owner::Unfollowed
                }
            }
        })
    }

    /// Removes the finalizer of a foreground deletion if no dependent is left to wait for; otherwise judges those.
    async fn complete_foreground(
        &self,
        uid: Uid,
        target: &Target,
        latest: &ObjectMeta,
    ) -> Result<(), RequestError> {
        let mut blocking = self.blocking_dependents(uid);
        if blocking.is_empty() {
            // The events of some may be on the way. The deletion is in `latest`, so it is older than what is waited for.
            self.progress.catch_up(&self.requests).await?;
            blocking = self.blocking_dependents(uid);
        }
        if blocking.is_empty() {
            return self.remove_finalizer(target, latest, FOREGROUND).await;
        }
        let waits = |(_, dependent): &&(Uid, Known)| !dependent.is_foreground;
        for (dependent, _) in blocking.iter().filter(waits) {
            self.queue.add(Work::Judge(*dependent));
        }
        Ok(())
    }

    fn blocking_dependents(&self, uid: Uid) -> Vec<(Uid, Known)> {
        self.followed.lock().graph.blocking_dependents(uid)
    }

    /// Ends the wait of foreground deletions that wait for each other, as those of a circle whose objects were all deleted
    /// by clients. Kubernetes' collector leaves those for ever.
    async fn break_circles(&self) -> Result<(), RequestError> {
        let (circles, members) = {
            let followed = self.followed.lock();
            let circles = followed.graph.circles();
            let place = |uid: &Uid| Some((*uid, followed.graph.get(*uid)?.place));
            let members: Vec<(Uid, Place)> = circles.iter().filter_map(place).collect();
            (circles, members)
        };
        let is_in_circle = |owner: &OwnerReference| circles.contains(&Uid::of(&owner.uid));
        let mut result = Ok(());
        for (uid, place) in members {
            let freed = async {
                let Some((target, latest)) = self.latest(uid, &place).await? else {
                    return Ok(());
                };
                let is_foreground = finalizer(&latest.finalizers) == Some(Finalizer::Foreground);
                if latest.deletion_timestamp.is_some() && is_foreground {
                    self.stop_blocking(&target, &latest, is_in_circle).await?;
                }
                Ok(())
            };
            // One that fails does not keep the others waiting.
            result = result.and(freed.await);
        }
        result
    }

    /// Makes an object block none of some owners.
    async fn stop_blocking(
        &self,
        target: &Target,
        latest: &ObjectMeta,
        is_chosen: impl Fn(&OwnerReference) -> bool,
    ) -> Result<Option<ObjectMeta>, RequestError> {
        let mut owners = latest.owner_references.clone();
        for owner in owners.iter_mut().filter(|owner| is_chosen(owner)) {
            owner.block_owner_deletion = Some(false);
        }
        self.requests
            .set(target, latest, OWNERS, json!(owners))
            .await
    }

    /// Deletes an object in the state that was judged. If only things have changed since that the judgement did not depend
    /// on, in that of now.
    async fn delete(
        &self,
        uid: Uid,
        target: &Target,
        judged: ObjectMeta,
        policy: &str,
    ) -> Result<(), RequestError> {
        let mut latest = judged.clone();
        for _ in 0..DELETE_ATTEMPTS {
            let preconditions =
                json!({"uid": latest.uid, "resourceVersion": latest.resource_version});
            let options = json!({"preconditions": preconditions, "propagationPolicy": policy});
            let error = match self.requests.delete(&target.path, options).await {
                Err(error) if error.is_conflict() => error,
                done => return done,
            };
            let now = self.requests.metadata(target).await?;
            match now.filter(|now| has_uid(now, uid)) {
                None => return Ok(()),
                // A client deleted it meanwhile: its policy counts, and the event is on the way.
                Some(now) if now.deletion_timestamp.is_some() => return Ok(()),
                Some(now) if is_as_judged(&now, &judged) => latest = now,
                Some(_) => return Err(error),
            }
        }
        Err(RequestError::Busy(target.path.clone()))
    }

    /// Removes the references of all dependents to an object, then its finalizer.
    async fn orphan_dependents(&self, uid: Uid) -> Result<(), RequestError> {
        // The deletion was observed, so dependents that are older than it are known after this.
        self.progress.catch_up(&self.requests).await?;
        let (known, dependents) = {
            let followed = self.followed.lock();
            let Some(known) = followed.graph.get(uid) else {
                return Ok(());
            };
            (known, followed.graph.dependents(uid))
        };
        let removed = futures_util::stream::iter(dependents)
            .map(|(dependent, known)| self.disown(uid, dependent, known.place))
            .buffer_unordered(ORPHANED_AT_ONCE);
        // One that fails does not keep the others waiting.
        let results: Vec<Result<(), RequestError>> = removed.collect().await;
        results.into_iter().collect::<Result<(), RequestError>>()?;
        let Some((target, latest)) = self.latest(uid, &known.place).await? else {
            return Ok(());
        };
        self.remove_finalizer(&target, &latest, ORPHAN).await
    }

    /// Removes the reference of a dependent to an owner.
    async fn disown(&self, owner: Uid, dependent: Uid, place: Place) -> Result<(), RequestError> {
        let Some((target, latest)) = self.latest(dependent, &place).await? else {
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
        let set = self.requests.set(&target, &latest, OWNERS, kept);
        set.await.map(drop)
    }

    async fn remove_finalizer(
        &self,
        target: &Target,
        latest: &ObjectMeta,
        name: &str,
    ) -> Result<(), RequestError> {
        let mut kept = latest.finalizers.clone();
        kept.retain(|known| known != name);
        if kept.len() == latest.finalizers.len() {
            return Ok(());
        }
        let set = self.requests.set(target, latest, "finalizers", json!(kept));
        set.await.map(drop)
    }
}

/// Whether what an object is judged by is still the same: its owners, and the finalizers that say how it is deleted.
fn is_as_judged(now: &ObjectMeta, judged: &ObjectMeta) -> bool {
    now.owner_references == judged.owner_references && now.finalizers == judged.finalizers
}

/// What a feed reports to. Once the feed is ended, it is ignored: the next one of its kind may know more.
pub(super) struct FeedSink {
    collector: Arc<Collector>,
    feed: EndpointId,
}

impl FeedSink {
    pub(super) fn new(collector: Arc<Collector>, feed: EndpointId) -> Self {
        Self { collector, feed }
    }

    fn change(&self, change: impl FnOnce(&mut Graph)) {
        self.collector.change(|followed| {
            if followed.feeds.contains(&self.feed) {
                change(&mut followed.graph);
            }
        });
    }
}

impl Sink for FeedSink {
    fn begin(&self) {
        self.collector.absent.lock().clear();
    }

    fn observe(&self, object: ObservedObject) {
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

/// The owners that were found absent last, by uid and path. A uid comes back only if the store is restored, which ends
/// all feeds.
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

    fn clear(&mut self) {
        *self = Self::default();
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
