//! The registry: all served resources, and their background tasks.

use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::kind::Verb;
use apiloom_storage::StorageError;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::snapshot::{Catalog, Settings};
use super::system_namespaces::SystemNamespaces;
use crate::endpoint::Endpoint;
use crate::objects::kind_cache::KindCache;
use crate::reads::lister::ListerCore;
use crate::rules::definition_room::DefinitionRoom;

/// Maximum time that the start waits for caches: enough to fill them from a store of 100,000 objects.
const FILL_PATIENCE: Duration = Duration::from_secs(2);

/// Interval of the checks for slow readers.
const LOOK_AT_READERS: Duration = Duration::from_secs(1);

/// The resources of a server with their stores: the current catalog, and the state that all catalogs share.
#[derive(Debug)]
pub struct Registry {
    catalog: Arc<ArcSwap<Catalog>>,
    pub(super) settings: Settings,
    /// Held while the catalog is changed.
    pub(super) changing: tokio::sync::Mutex<()>,
    /// One permit, held by a running migration.
    pub(super) migrating: Arc<Semaphore>,
    pub(super) listers: Vec<Arc<ListerCore>>,
    /// Those that the server creates itself.
    namespaces: Option<Arc<SystemNamespaces>>,
    /// The generation of the current catalog.
    generations: watch::Sender<u64>,
    /// Background tasks, aborted when this is dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl Registry {
    pub(crate) fn new(
        catalog: Catalog,
        settings: Settings,
        listers: Vec<Arc<ListerCore>>,
        namespaces: Option<SystemNamespaces>,
    ) -> Self {
        settings
            .shared
            .writes
            .registered
            .store(Arc::new(catalog.registered()));
        Self {
            generations: watch::Sender::new(catalog.generation()),
            catalog: Arc::new(ArcSwap::from_pointee(catalog)),
            settings,
            changing: tokio::sync::Mutex::default(),
            migrating: Arc::new(Semaphore::new(1)),
            listers,
            namespaces: namespaces.map(Arc::new),
            tasks: Mutex::default(),
        }
    }

    /// The current catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The generation of the current catalog; see [`Catalog::generation`].
    pub fn generation(&self) -> u64 {
        self.catalog.load().generation()
    }

    /// The room of the definitions that are served.
    pub fn definition_room(&self) -> &DefinitionRoom {
        &self.settings.definition_room
    }

    /// Changes when another catalog is published.
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.generations.subscribe()
    }

    /// The endpoint of a resource in a version; `None` if it is not served.
    pub fn endpoint(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Endpoint>> {
        self.catalog
            .load()
            .endpoint(group, version, plural)
            .cloned()
    }

    /// Replaces the current catalog. Watches of endpoints that the new one does not have end.
    pub(super) fn publish(&self, catalog: Catalog) {
        self.settings
            .shared
            .writes
            .registered
            .store(Arc::new(catalog.registered()));
        let catalog = Arc::new(catalog);
        let left = self.catalog.swap(Arc::clone(&catalog));
        self.generations.send_replace(catalog.generation());
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

    /// Starts the watch caches of a catalog that are not running yet, if the registry was started; returns whether it
    /// was.
    pub(super) fn run_caches(&self, catalog: &Catalog) -> bool {
        let mut tasks = self.tasks.lock();
        if tasks.is_empty() {
            return false;
        }
        // Removes tasks of caches that are no longer served.
        while tasks.try_join_next().is_some() {}
        let of_listers = self.listers.iter().filter_map(|lister| lister.cache());
        let caches = catalog.caches().map(|(_, cache)| cache).chain(of_listers);
        for cache in caches.filter(|cache| !cache.task.is_started()) {
            let task = tasks.spawn(Arc::clone(&cache.cache).run());
            cache.task.started(task);
        }
        true
    }

    /// Reads the stored values again that the watch caches could not decode, because they may be decrypted with other keys now. The
    /// caches that have some are filled again, which ends their watches.
    pub fn refill_unreadable(&self) {
        let catalog = self.catalog();
        let of_listers = self.listers.iter().filter_map(|lister| lister.cache());
        let caches = catalog.caches().map(|(_, cache)| cache).chain(of_listers);
        for KindCache { cache, .. } in caches {
            if cache.refill_unreadable() {
                tracing::info!(prefix = cache.prefix(), "the watch cache is filled again");
            }
        }
    }

    /// Starts the watch caches, creates the namespaces of the system, and returns when the caches are filled, or after a
    /// timeout. Until they are filled, some reads go to the store and others are refused, see
    /// [`Registry::not_filled`]. The caches follow the store until [`Registry::stop`].
    ///
    /// # Errors
    /// The store's error if it cannot be read.
    pub async fn start(&self) -> Result<(), StorageError> {
        {
            let mut tasks = self.tasks.lock();
            if tasks.is_empty() {
                tasks.spawn(cut_off_slow_readers(Arc::clone(&self.catalog)));
                if let Some(namespaces) = &self.namespaces {
                    tasks.spawn(Arc::clone(namespaces).keep());
                }
            }
        }
        let catalog = self.catalog();
        self.run_caches(&catalog);
        if let Some(namespaces) = &self.namespaces {
            namespaces.create().await?;
        }
        for lister in &self.listers {
            let ready = lister.ready().await;
            ready.map_err(|error| StorageError::Unavailable(error.message))?;
        }
        if !fill(&catalog).await {
            tracing::warn!(missing = ?self.not_filled(), "serving before all watch caches are filled");
        }
        Ok(())
    }

    /// Stops the background tasks and waits for their end, so that the store can be closed. Dropping the registry
    /// aborts them too.
    pub async fn stop(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
    }

    /// Runs `read` for a query of this size, a long one without blocking other requests.
    pub async fn read_query<T>(&self, bytes: usize, read: impl FnOnce() -> T) -> T {
        self.settings.shared.large.read_query(bytes, read).await
    }

    /// Makes the schemas that a request with this verb needs of a large stored definition, as work on a large document.
    pub async fn prepare(&self, endpoint: &Endpoint, verb: Verb) {
        let bytes = endpoint.bytes_to_make(verb);
        let make = || endpoint.make_schemas(verb);
        self.settings.shared.large.run(bytes, make).await;
    }

    /// Reserves the whole capacity for large documents, for tests of the waits for it.
    #[doc(hidden)]
    pub async fn take_room(&self) -> Option<Vec<tokio::sync::OwnedSemaphorePermit>> {
        self.settings.shared.large.reserve(usize::MAX).await
    }
}

/// Waits for the watch caches of a catalog, up to a timeout; returns whether all are filled.
pub(super) async fn fill(catalog: &Catalog) -> bool {
    let filled = async {
        for (_, cache) in catalog.caches() {
            // Fails when the cache ends, and then the registry ends too.
            let mut progress = cache.cache.progress();
            let _ = progress
                .wait_for(|progress| progress.fill.is_filled())
                .await;
        }
    };
    tokio::time::timeout(FILL_PATIENCE, filled).await.is_ok()
}

/// At intervals, cuts off slow readers and drops field values that lists no longer use; never returns.
async fn cut_off_slow_readers(catalog: Arc<ArcSwap<Catalog>>) {
    let mut looks = tokio::time::interval(LOOK_AT_READERS);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        for endpoint in catalog.load_full().endpoints() {
            if let Some(reads) = endpoint.reads().stored() {
                reads.cut_off_slow_readers();
                reads.field_values.forget_unused();
            }
        }
    }
}
