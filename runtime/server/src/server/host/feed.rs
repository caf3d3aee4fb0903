//! The metadata of all objects of a kind, as they change, for the graph.

mod counts;
mod reports;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use apiloom_meta::codec::Finder;
use apiloom_meta::kind::SmolStr;
use apiloom_meta::{ApiError, JsonPath, OwnerReference, StatusReason};
use apiloom_registry::{Document, Endpoint};
use apiloom_storage::Revision;
use apiloom_storage::cache::CacheProgress;
use tokio::sync::watch;

pub use self::counts::Counts;
pub use self::reports::{FeedReports, Progress, ReportReader};
use super::follower::{Follower, Update};
use super::observed_object::{Finalizer, ObservedObject, Place, Reference};
use super::uid::Uid;

/// Time between looks at the progress of a watch that tells none.
const CHECK_AGAIN: Duration = Duration::from_millis(10);

/// The finalizer of a foreground deletion.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of a deletion that keeps the dependents.
pub const ORPHAN: &str = "orphan";

type FeedFollower = Follower<Uid, ObservedObject>;

/// What a feed reports, in order.
pub trait Sink: Send + Sync {
    /// All objects are going to be reported, perhaps by a store that went back to an earlier state. Default nothing.
    fn begin(&self) {}
    /// An object is new or changed.
    fn observe(&self, object: ObservedObject);
    /// An object was deleted.
    fn remove(&self, uid: Uid);
    /// All objects of the kind were reported, and these are all.
    fn complete(&self, group: &str, kind: &str, listed: &HashSet<Uid>);
}

/// How a feed says what it has reported.
pub struct Reporter {
    /// Tells what was reported.
    pub progress: FeedReports,
    /// The revision that is waited for: once it is reached, the progress says so.
    pub wanted: watch::Receiver<Revision>,
    /// Counts what the feed does.
    pub counts: Arc<Counts>,
}

impl Reporter {
    /// One whose progress is not used.
    pub fn unread(counts: Arc<Counts>) -> Self {
        Self {
            progress: FeedReports::default(),
            wanted: watch::channel(Revision(0)).1,
            counts,
        }
    }

    fn set_complete(&self, is_complete: bool) {
        self.progress
            .change(|progress| progress.is_complete = is_complete);
    }

    fn is_awaited(&self) -> bool {
        *self.wanted.borrow() > self.progress.now().reached
    }

    fn set_reached(&self, delivered: Option<Revision>) {
        let Some(reached) = delivered else { return };
        self.progress.change(|progress| progress.reached = reached);
    }

    fn fail(&self, endpoint: &Endpoint, error: &ApiError) {
        self.counts.count_failure();
        let resource = endpoint.resource().group_resource();
        tracing::warn!(%resource, %error, "cannot follow a resource");
        // Others are those of a store or a cache that does not answer yet. That of a webhook has no reason.
        if matches!(error.reason, None | Some(StatusReason::InternalError)) {
            self.progress.set_problem(Some(&error.message));
        }
    }

    /// Reports what an open watch tells.
    fn report(
        &self,
        update: Update<Uid, ObservedObject>,
        follower: &mut FeedFollower,
        sink: &dyn Sink,
    ) {
        self.counts.set_updated();
        if follower.is_complete() {
            self.progress.set_problem(follower.unreadable());
        }
        match update {
            Update::Added(object) => {
                if follower.is_complete() {
                    self.counts.count_new();
                }
                sink.observe(object);
            }
            Update::Modified(object) => sink.observe(object),
            Update::Deleted(uid) => {
                self.counts.count_deleted();
                sink.remove(uid);
            }
            Update::Complete(listed) => {
                let def = follower.endpoint().def();
                sink.complete(&def.group, &def.kind, &listed);
                self.counts.count_list(listed.len());
                self.set_reached(follower.delivered());
                self.set_complete(true);
            }
            Update::Begun | Update::Alive | Update::Ended(_) => {}
        }
        // A kind that changes all the time is never idle.
        if self.is_awaited() {
            self.set_reached(follower.delivered());
        }
    }

    /// Waits until the feed may have reached the revision that is waited for, and converts nothing.
    async fn may_be_reached(
        &mut self,
        cache: Option<&mut watch::Receiver<CacheProgress>>,
        checked: &mut Revision,
        idle: &AtomicBool,
    ) {
        let reached = self.progress.now().reached;
        // An error means that nothing will be waited for.
        let wanted = self.wanted.wait_for(|wanted| *wanted > reached).await;
        let Ok(wanted) = wanted.map(|wanted| *wanted) else {
            return std::future::pending().await;
        };
        // Nothing is waited for most of the time, and there is one of these tasks for each kind.
        Box::pin(self.may_have_idle(wanted, cache, checked, idle)).await;
    }

    /// As [`Reporter::may_be_reached`], with the revision that is waited for.
    async fn may_have_idle(
        &mut self,
        mut wanted: Revision,
        mut cache: Option<&mut watch::Receiver<CacheProgress>>,
        checked: &mut Revision,
        idle: &AtomicBool,
    ) {
        loop {
            self.may_have(wanted, cache.as_deref_mut(), checked).await;
            if idle.load(Ordering::Relaxed) {
                return;
            }
            wanted = *self.wanted.borrow_and_update();
        }
    }

    /// Waits until the feed may have reached this revision, or another one is waited for.
    async fn may_have(
        &mut self,
        wanted: Revision,
        cache: Option<&mut watch::Receiver<CacheProgress>>,
        checked: &mut Revision,
    ) {
        match cache {
            Some(cache) if *checked < wanted => {
                let reached = async {
                    if cache
                        .wait_for(|cache| cache.revision >= wanted)
                        .await
                        .is_err()
                    {
                        std::future::pending::<()>().await;
                    }
                };
                tokio::select! {
                    () = reached => *checked = wanted,
                    // After a restore of the store, a lower one may be waited for.
                    Ok(()) = self.wanted.changed() => {}
                }
            }
            _ => {
                tokio::time::sleep(CHECK_AGAIN).await;
                *checked = wanted;
            }
        }
    }
}

/// Reports the objects of a kind until it is dropped.
pub async fn follow(endpoint: Arc<Endpoint>, sink: Arc<dyn Sink>, mut reporter: Reporter) {
    let cache = endpoint.resource().cache.as_ref();
    let mut cache = cache.map(|cache| cache.progress());
    let mut checked = Revision(0);
    let mut follower: FeedFollower = Follower::new(endpoint, observe);
    loop {
        let idle = follower.idle();
        let update = tokio::select! {
            biased;
            update = follower.next() => update,
            // A conversion would begin again with each look at the progress.
            () = reporter.may_be_reached(cache.as_mut(), &mut checked, &idle), if follower.is_complete() => {
                // An object that is left out makes no event.
                reporter.progress.set_problem(follower.unreadable());
                reporter.set_reached(follower.delivered());
                continue;
            }
        };
        match update {
            Update::Begun => {
                checked = Revision(0);
                reporter.counts.count_watch();
                sink.begin();
            }
            Update::Ended(error) => {
                reporter.set_complete(false);
                if follower.endpoint().has_ended() {
                    return;
                }
                if let Some(error) = error {
                    reporter.fail(follower.endpoint(), &error);
                }
            }
            update => reporter.report(update, &mut follower, &*sink),
        }
    }
}

/// What the graph needs of an object; `None` for an object without a uid.
fn observe(endpoint: &Endpoint, document: &Document) -> Option<(Uid, ObservedObject)> {
    static FIELDS: LazyLock<Finder> = LazyLock::new(|| {
        let fields = [
            "uid",
            "name",
            "namespace",
            "deletionTimestamp",
            "finalizers",
            "ownerReferences",
        ];
        Finder::new(fields.map(|field| JsonPath::new([field])))
    });
    // The schema is made when it is first needed, and encoded objects need none.
    let json = match document {
        Document::Encoded(encoded) => encoded.json(),
        Document::Converted(_) | Document::Decoded(_) => document.json(endpoint.schema()),
    };
    let found = FIELDS.find(json.metadata());
    let [uid, name, namespace, deletion, finalizers, owners] = found.try_into().ok()?;
    let text = |json: Option<&[u8]>| -> String {
        json.and_then(|json| serde_json::from_slice(json).ok())
            .unwrap_or_default()
    };
    let uid = text(uid);
    if uid.is_empty() {
        return None;
    }
    let uid = Uid::of(&uid);
    let finalizers: Vec<String> = parse(finalizers);
    let owners: Vec<OwnerReference> = parse(owners);
    let def = endpoint.def();
    let observed = ObservedObject {
        uid,
        place: Place {
            group: def.group.clone(),
            kind: def.kind.clone(),
            namespace: text(namespace).into(),
            name: text(name).into(),
        },
        owners: owners.iter().map(reference).collect(),
        is_deleting: deletion.is_some(),
        finalizer: finalizer(&finalizers),
    };
    Some((uid, observed))
}

/// A list of the metadata; empty if it is absent.
fn parse<T: serde::de::DeserializeOwned>(json: Option<&[u8]>) -> Vec<T> {
    json.and_then(|json| serde_json::from_slice(json).ok())
        .unwrap_or_default()
}

/// What the finalizers of an object ask of the garbage collector. No object has both, but one that got them anyway keeps
/// its dependents.
pub fn finalizer<T: AsRef<str>>(finalizers: &[T]) -> Option<Finalizer> {
    let has = |name: &str| finalizers.iter().any(|known| known.as_ref() == name);
    if has(ORPHAN) {
        Some(Finalizer::Orphan)
    } else {
        has(FOREGROUND).then_some(Finalizer::Foreground)
    }
}

/// The edge for an owner reference.
pub fn reference(owner: &OwnerReference) -> Reference {
    let group = owner
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    Reference {
        uid: Uid::of(&owner.uid),
        group: group.into(),
        kind: SmolStr::new(&owner.kind),
        name: SmolStr::new(&owner.name),
        blocks: owner.block_owner_deletion == Some(true),
    }
}

#[cfg(test)]
mod tests {
    use apiloom_storage::cache::Fill;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lower_revision_is_waited_for_after_a_restore_of_the_store() {
        let (wanted, asked) = watch::channel(Revision(1000));
        let (_cache, mut cache) = watch::channel(CacheProgress {
            revision: Revision(10),
            fill: Fill::Following,
        });
        let mut reporter = Reporter {
            progress: FeedReports::default(),
            wanted: asked,
            counts: Arc::default(),
        };
        let mut checked = Revision(0);
        let reached = async {
            while checked < Revision(8) {
                reporter
                    .may_be_reached(Some(&mut cache), &mut checked, &true.into())
                    .await;
            }
        };
        let restored = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            wanted.send_replace(Revision(8));
        };
        let both = async { tokio::join!(reached, restored) };
        tokio::time::timeout(Duration::from_secs(60), both)
            .await
            .unwrap();
        assert_eq!(checked, Revision(8));
    }
}
