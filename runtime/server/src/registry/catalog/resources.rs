//! Every resource of a server, and the tasks that serve them.

use std::sync::Arc;
use std::time::Duration;

use apiloom_apis::core::v1::Namespace;
use apiloom_meta::{ApiError, Object, Resource as _, StatusReason};
use apiloom_storage::StorageError;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::snapshot::{Catalog, Settings};
use crate::registry::endpoint::Endpoint;
use crate::registry::options::{CreateOptions, RequestContext};
use crate::registry::reads::lister::ListerCore;
use crate::registry::rules::namespace;

/// How long the start waits for caches: more than a store of 100,000 objects takes.
const FILL_PATIENCE: Duration = Duration::from_secs(2);

/// How often it is looked whether clients that read slowly keep too much alive.
const LOOK_AT_READERS: Duration = Duration::from_secs(1);

/// The resources of a server over their stores: the catalog of the moment, and what outlives it.
#[derive(Debug)]
pub struct Registry {
    catalog: Arc<ArcSwap<Catalog>>,
    pub(super) settings: Settings,
    /// Held while the catalog is changed.
    pub(super) changing: tokio::sync::Mutex<()>,
    pub(super) listers: Vec<Arc<ListerCore>>,
    /// Namespaces without admission, for the server's own.
    namespaces: Option<Endpoint>,
    /// Ended when this is dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl Registry {
    pub(crate) fn new(
        catalog: Catalog,
        settings: Settings,
        listers: Vec<Arc<ListerCore>>,
        namespaces: Option<Endpoint>,
    ) -> Self {
        settings
            .shared
            .writes
            .registered
            .store(Arc::new(catalog.registered()));
        Self {
            catalog: Arc::new(ArcSwap::from_pointee(catalog)),
            settings,
            changing: tokio::sync::Mutex::default(),
            listers,
            namespaces,
            tasks: Mutex::default(),
        }
    }

    /// What is served now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The number of the catalog that is served now; see [`Catalog::generation`].
    pub fn generation(&self) -> u64 {
        self.catalog.load().generation()
    }

    /// The resource at a path, in the version asked for. `None` for what is not served.
    pub fn endpoint(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Endpoint>> {
        self.catalog
            .load()
            .endpoint(group, version, plural)
            .cloned()
    }

    /// Serves another catalog from now on. Watches of endpoints that it does not have end.
    pub(super) fn publish(&self, catalog: Catalog) {
        self.settings
            .shared
            .writes
            .registered
            .store(Arc::new(catalog.registered()));
        let catalog = Arc::new(catalog);
        let left = self.catalog.swap(Arc::clone(&catalog));
        let stays = |endpoint: &Arc<Endpoint>| {
            let def = endpoint.def();
            catalog
                .endpoint(&def.group, &def.version, &def.plural)
                .is_some_and(|served| served.id == endpoint.id)
        };
        left.endpoints()
            .iter()
            .filter(|endpoint| !stays(endpoint))
            .for_each(|endpoint| endpoint.end());
    }

    /// Runs the watch caches of a catalog that do not run yet, if the registry has started; says whether it has.
    pub(super) fn run_caches(&self, catalog: &Catalog) -> bool {
        let mut tasks = self.tasks.lock();
        if tasks.is_empty() {
            return false;
        }
        // The tasks of caches that are no longer served.
        while tasks.try_join_next().is_some() {}
        for (_, cache) in catalog.caches().filter(|(_, c)| !c.task.is_started()) {
            let task = tasks.spawn(Arc::clone(&cache.cache).run());
            cache.task.started(task);
        }
        true
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
                tasks.spawn(cut_off_slow_readers(Arc::clone(&self.catalog)));
            }
        }
        let catalog = self.catalog();
        self.run_caches(&catalog);
        self.make_default_namespace().await?;
        for lister in &self.listers {
            lister.ready().await?;
        }
        if !fill(&catalog).await {
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
        self.settings.shared.large.read_query(bytes, read).await
    }

    /// Takes all the room that there is for large documents.
    #[cfg(test)]
    pub(crate) async fn take_room(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        self.settings.shared.large.reserve(usize::MAX).await
    }

    async fn make_default_namespace(&self) -> Result<(), StorageError> {
        let Some(namespaces) = &self.namespaces else {
            return Ok(());
        };
        let mut object = Object::default();
        object.set_type(Namespace::VERSION, Namespace::KIND);
        object.set_meta_str("name", namespace::DEFAULT);
        match namespaces
            .writes()
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

/// Waits until the watch caches of a catalog are filled, and says whether they are: some may not fill at once.
pub(super) async fn fill(catalog: &Catalog) -> bool {
    let filled = async {
        for (_, cache) in catalog.caches() {
            // Ends when the cache does, and then so does the registry.
            let _ = cache.cache.fill().wait_for(|fill| fill.is_filled()).await;
        }
    };
    tokio::time::timeout(FILL_PATIENCE, filled).await.is_ok()
}

/// Cuts off readers that keep too much alive, and drops values that lists no longer ask for; never returns.
async fn cut_off_slow_readers(catalog: Arc<ArcSwap<Catalog>>) {
    let mut looks = tokio::time::interval(LOOK_AT_READERS);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        for endpoint in catalog.load_full().endpoints() {
            endpoint.reads().cut_off_slow_readers();
            endpoint.reads().field_values.forget_unused();
        }
    }
}
