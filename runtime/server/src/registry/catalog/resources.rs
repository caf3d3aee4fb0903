//! Every resource of a server, and the tasks that serve them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::{ApiError, GroupResource, Object, StatusReason};
use apiloom_storage::StorageError;
use apiloom_storage::cache::WatchCache;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::registry::endpoint::Endpoint;
use crate::registry::large::LargeDocuments;
use crate::registry::objects::served::Served;
use crate::registry::options::{CreateOptions, RequestContext};
use crate::registry::reads::lister::ListerCore;
use crate::registry::rules::namespace;

/// How long the start waits for caches: more than a store of 100,000 objects takes.
const FILL_PATIENCE: Duration = Duration::from_secs(2);

/// How often it is looked whether clients that read slowly keep too much alive.
const LOOK_AT_READERS: Duration = Duration::from_secs(1);

/// Every resource of a server over one store.
#[derive(Debug)]
pub struct Registry {
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
    /// By plural, then group and version: lookups by borrowed parts of a path.
    by_plural: HashMap<String, Vec<Arc<Endpoint>>>,
    groups: Vec<ServedGroup>,
    listers: Vec<Arc<ListerCore>>,
    pub(crate) caches: Vec<(GroupResource, Arc<WatchCache<Served>>)>,
    /// Namespaces without admission, for the server's own.
    namespaces: Option<Endpoint>,
    /// Room for large documents and long queries, the same as the endpoints'.
    large: LargeDocuments,
    /// Ended when this is dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl Registry {
    pub(crate) fn new(
        endpoints: Vec<Arc<Endpoint>>,
        groups: Vec<ServedGroup>,
        listers: Vec<Arc<ListerCore>>,
        caches: Vec<(GroupResource, Arc<WatchCache<Served>>)>,
        namespaces: Option<Endpoint>,
        large: LargeDocuments,
    ) -> Self {
        let mut by_plural: HashMap<String, Vec<Arc<Endpoint>>> = HashMap::new();
        for endpoint in &endpoints {
            by_plural
                .entry(endpoint.def().plural.to_string())
                .or_default()
                .push(Arc::clone(endpoint));
        }
        Self {
            endpoints,
            by_plural,
            groups,
            listers,
            caches,
            namespaces,
            large,
            tasks: Mutex::default(),
        }
    }

    /// The resource at a path, in the version asked for. `None` for what is not served.
    pub fn endpoint(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Endpoint>> {
        self.by_plural
            .get(plural)?
            .iter()
            .find(|e| e.def().group == group && e.def().version == version)
    }
    /// Every served resource, in order of registration; what discovery and OpenAPI read.
    pub fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }
    /// The groups in order of registration, core first; each with its served versions in order of preference.
    pub fn groups(&self) -> &[ServedGroup] {
        &self.groups
    }
    /// Fills caches, makes the `default` namespace, and returns when reads may begin: when the caches are filled, or do not
    /// fill at once. Then reads go to the store as far as it can bear them, and [`Registry::not_filled`] says so. The caches
    /// are kept up to date until [`Registry::stop`].
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn start(&self) -> Result<(), StorageError> {
        {
            let mut tasks = self.tasks.lock();
            if tasks.is_empty() {
                for lister in &self.listers {
                    tasks.spawn(Arc::clone(lister).run());
                }
                for (_, cache) in &self.caches {
                    tasks.spawn(Arc::clone(cache).run());
                }
                tasks.spawn(cut_off_slow_readers(self.endpoints.clone()));
            }
        }
        self.make_default_namespace().await?;
        for lister in &self.listers {
            lister.ready().await?;
        }
        let filled = async {
            for (_, cache) in &self.caches {
                // Ends when the cache does, and then so does the registry.
                let _ = cache.fill().wait_for(|fill| fill.is_filled()).await;
            }
        };
        if tokio::time::timeout(FILL_PATIENCE, filled).await.is_err() {
            tracing::warn!(missing = ?self.not_filled(), "begins to serve before every watch cache is filled");
        }
        Ok(())
    }

    /// Ends what [`Registry::start`] began and returns when it has ended, before the store is closed under it. Dropping
    /// the registry ends it too.
    pub async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
    }

    /// Does what takes a query of this size; a long one holds up no other request.
    pub(crate) async fn read_query<T>(&self, bytes: usize, read: impl FnOnce() -> T) -> T {
        self.large.read_query(bytes, read).await
    }

    /// Takes all the room that there is for large documents.
    #[cfg(test)]
    pub(crate) async fn take_room(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        self.large.reserve(usize::MAX).await
    }

    async fn make_default_namespace(&self) -> Result<(), StorageError> {
        let Some(namespaces) = &self.namespaces else {
            return Ok(());
        };
        let mut object = Object::default();
        object.set_type("v1", "Namespace");
        object.set_meta_str("name", namespace::DEFAULT);
        match namespaces
            .create(
                &RequestContext::default(),
                None,
                object,
                &CreateOptions::default(),
            )
            .await
        {
            Ok(_) => Ok(()),
            Err(ApiError {
                reason: Some(StatusReason::AlreadyExists),
                ..
            }) => Ok(()),
            Err(error) => Err(StorageError::Unavailable(error.message)),
        }
    }
}

/// Cuts off readers that keep too much alive, and drops values that lists no longer ask for; never returns.
async fn cut_off_slow_readers(endpoints: Vec<Arc<Endpoint>>) {
    let mut looks = tokio::time::interval(LOOK_AT_READERS);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        for endpoint in &endpoints {
            endpoint.cut_off_slow_readers();
            endpoint.field_values.forget_unused();
        }
    }
}

/// A group and its served versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedGroup {
    /// The group's name; empty for core.
    pub name: String,
    /// Served versions, preferred first.
    pub versions: Vec<String>,
    /// The release that lifecycles compare with.
    pub release: Option<apiloom_meta::kind::Release>,
}
