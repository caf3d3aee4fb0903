//! Which kinds the servers over a store serve: each writes a record of its own, which ends some time after the server.
//!
//! Of servers of different releases, or with different settings, one that does not know a kind must not run the controllers
//! for the others: it would remove the last finalizer of an owner whose dependents it does not see.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::controller::{CancellationToken, LeaderElector};
use apiloom_meta::kind::{SmolStr, Verb};
use apiloom_registry::Registry;
use apiloom_storage::{ListRequest, Revision, Storage, StorageError};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// How long the record of a server that was killed stays: with a look less than the 15 s after which its work goes on.
const LIFETIME: Duration = Duration::from_secs(12);

/// Time between renewals of a record.
const RENEWAL: Duration = Duration::from_secs(4);

/// Time until a record that could not be written is written again.
const RETRY: Duration = Duration::from_secs(1);

/// Time between looks for a server that should run a controller in place of this one.
const LOOK: Duration = Duration::from_secs(2);

/// A store that several servers have.
#[derive(Clone)]
pub struct SharedStore {
    pub(in crate::server) store: Arc<dyn Storage>,
    /// Prefix of all keys of the servers, without a slash at its end.
    pub(in crate::server) key_prefix: String,
    /// The name of the record of this server, which no other server has.
    identity: String,
}

/// Whether other servers run over a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherServers {
    /// There are none.
    None,
    /// There are some, or the records cannot be read.
    Some,
    /// This server has no record yet, so others cannot know of it.
    NotYetKnown,
}

impl SharedStore {
    /// The store of a server that just started.
    pub(in crate::server) fn new(store: Arc<dyn Storage>, key_prefix: String) -> Self {
        Self {
            store,
            key_prefix,
            identity: LeaderElector::unique_identity("apiloom"),
        }
    }

    /// Prefix of the keys of all records.
    fn prefix(&self) -> String {
        format!("{}/apiloom/servers/", self.key_prefix)
    }

    /// The key of the record of this server.
    fn own_key(&self) -> String {
        format!("{}{}", self.prefix(), self.identity)
    }

    /// Whether other servers run now. One that was stopped does not, although its record stays for a time; one that was
    /// killed counts until its record ends.
    pub async fn other_servers(&self) -> OtherServers {
        let request = ListRequest {
            prefix: self.prefix(),
            ..ListRequest::default()
        };
        let Ok(page) = self.store.list(request).await else {
            return OtherServers::Some;
        };
        let own = self.own_key();
        let (of_this, others): (Vec<_>, Vec<_>) =
            page.entries.iter().partition(|entry| *entry.key == *own);
        if others
            .iter()
            .any(|entry| !Record::of(&entry.value).is_stopped)
        {
            OtherServers::Some
        } else if of_this.is_empty() {
            OtherServers::NotYetKnown
        } else {
            OtherServers::None
        }
    }
}

/// Group and kind.
type KindName = (SmolStr, SmolStr);

/// What a server serves.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    /// The kinds whose objects can be deleted.
    kinds: BTreeSet<KindName>,
    /// The names of the controllers that it may run.
    controllers: BTreeSet<SmolStr>,
    /// Whether it was stopped. A record of an earlier release does not say it.
    #[serde(default)]
    is_stopped: bool,
}

impl Record {
    fn of(json: &[u8]) -> Self {
        serde_json::from_slice(json).unwrap_or_else(|_| Self::unknown())
    }

    /// The record that a later release may have written in another form: it may serve anything.
    fn unknown() -> Self {
        let kind = (
            SmolStr::default(),
            SmolStr::new_static("of an unknown record"),
        );
        Self {
            kinds: BTreeSet::from([kind]),
            controllers: BTreeSet::new(),
            is_stopped: false,
        }
    }

    /// Whether its server should run a controller in place of one with these kinds: it serves all of them and more, and
    /// may run the controller.
    fn is_better_than(&self, kinds: &BTreeSet<KindName>, controller: &str) -> bool {
        self.controllers.contains(controller)
            && self.kinds.len() > kinds.len()
            && kinds.is_subset(&self.kinds)
    }
}

/// What a server does when it writes its record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Stopped,
}

/// The records of the servers over a store, and this server's own.
pub(in crate::server) struct Servers {
    store: Arc<dyn Storage>,
    registry: Arc<Registry>,
    /// The prefix of the keys of all records.
    prefix: String,
    /// The key of the record of this server.
    own: String,
    /// The controllers that this server may run.
    names: Vec<&'static str>,
}

impl Servers {
    /// The servers over a store. This one may run the controllers with these names.
    pub(in crate::server) fn new(
        shared: &SharedStore,
        registry: Arc<Registry>,
        names: Vec<&'static str>,
    ) -> Self {
        let SharedStore { store, .. } = shared;
        let (prefix, own) = (shared.prefix(), shared.own_key());
        Self {
            store: Arc::clone(store),
            registry,
            prefix,
            own,
            names,
        }
    }

    /// Writes the record of this server, and keeps it up to date until the signal. Then the record says that the server runs
    /// no controllers, and ends by itself: while the server starts again, others know that there are objects of its kinds.
    pub(in crate::server) async fn keep_record(&self, stop: &CancellationToken) {
        let mut at = None;
        let mut catalogs = self.registry.generations();
        loop {
            catalogs.mark_unchanged();
            let wait = match self.write(at, State::Running).await {
                Ok(revision) => {
                    at = Some(revision);
                    RENEWAL
                }
                // It ended, or was written by a request whose response was lost.
                Err(StorageError::Conflict { .. }) if at.is_some() => {
                    at = None;
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot tell other servers which kinds are served");
                    at = None;
                    RETRY
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(wait) => {}
                changed = catalogs.changed() => if changed.is_err() { break },
            }
        }
        // If that fails, others wait for the end of the record to take the controllers.
        let _ = self.write(at, State::Stopped).await;
    }

    async fn write(&self, at: Option<Revision>, state: State) -> Result<Revision, StorageError> {
        let names = match state {
            State::Running => &*self.names,
            State::Stopped => &[],
        };
        let names = names.iter().copied();
        let record = Record {
            kinds: self.own_kinds(),
            controllers: names.map(SmolStr::new_static).collect(),
            is_stopped: state == State::Stopped,
        };
        let value = serde_json::to_vec(&record).expect("texts make JSON");
        let value = Bytes::from(value);
        let known = match at {
            Some(at) => Some(at),
            None => self
                .store
                .get(&self.own)
                .await?
                .0
                .map(|entry| entry.revision),
        };
        let (key, lifetime) = (&self.own, Some(LIFETIME));
        match known {
            Some(at) => self.store.update_if(key, at, value, lifetime).await,
            None => self.store.create(key, value, lifetime).await,
        }
    }

    fn own_kinds(&self) -> BTreeSet<KindName> {
        let catalog = self.registry.catalog();
        let defs = catalog.endpoints().iter().map(|endpoint| endpoint.def());
        let deletable = defs.filter(|def| def.verbs.contains(&Verb::Delete));
        let names = deletable.map(|def| (def.group.clone(), def.kind.clone()));
        names.collect()
    }

    /// The records of the other servers.
    async fn others(&self) -> Result<Vec<Record>, StorageError> {
        let request = ListRequest {
            prefix: self.prefix.clone(),
            ..ListRequest::default()
        };
        let page = self.store.list(request).await?;
        let others = page.entries.iter().filter(|entry| *entry.key != *self.own);
        Ok(others.map(|entry| Record::of(&entry.value)).collect())
    }

    /// A kind that another server serves, and this one does not.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub(in crate::server) async fn unserved_kind(&self) -> Result<Option<KindName>, StorageError> {
        let own = self.own_kinds();
        let kinds = self
            .others()
            .await?
            .into_iter()
            .flat_map(|other| other.kinds);
        Ok(kinds.into_iter().find(|kind| !own.contains(kind)))
    }

    /// Waits until no other server should run the controller in place of this one.
    pub(in crate::server) async fn wait_for_none_better(&self, controller: &str) {
        while self.has_better(controller).await {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until another server should run the controller in place of this one, in two looks in a row: the kinds of a
    /// server change while it reads its definitions.
    pub(in crate::server) async fn wait_for_better(&self, controller: &str) {
        let mut had_better = false;
        loop {
            let has_better = self.has_better(controller).await;
            if had_better && has_better {
                return;
            }
            had_better = has_better;
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn has_better(&self, controller: &str) -> bool {
        let own = self.own_kinds();
        let is_better = |other: &Record| other.is_better_than(&own, controller);
        // With a store that cannot be read, the lease is lost as well.
        self.others()
            .await
            .is_ok_and(|others| others.iter().any(is_better))
    }
}

#[cfg(test)]
mod tests;
