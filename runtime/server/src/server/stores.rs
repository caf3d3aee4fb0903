//! The stores of a server: the main one, and those of single resources.

use std::path::PathBuf;
use std::sync::Arc;

use apiloom_registry::RegistryBuilder;
use apiloom_storage::{Embedded, EmbeddedConfig, Memory, Retention, Storage};

use super::{Backend, Config, ServerError, private_file};

/// The open stores of a server.
pub(super) struct Stores {
    is_etcd: bool,
    /// Store of all resources without one of their own.
    main: Arc<dyn Storage>,
    own: Vec<OwnStore>,
}

/// A separate store of one resource: group, plural name, store.
pub(super) type OwnStore = (String, String, Arc<dyn Storage>);

impl Stores {
    /// Opens the configured stores, unless the program gives a main store. `own` are the program's stores of single
    /// resources, which take precedence over those of the configuration.
    pub(super) async fn open(
        config: &Config,
        main: Option<Arc<dyn Storage>>,
        own: Vec<OwnStore>,
    ) -> Result<Self, ServerError> {
        let mut stores = match (main, config.backend) {
            (Some(main), _) => Self::one(main),
            (None, Backend::Memory) => Self::one(Memory::beginning_now()),
            (None, Backend::Embedded) => {
                private_file::make_dir(&config.data_dir)?;
                let retention = Retention {
                    max_bytes: config.embedded_history_bytes,
                    ..Retention::default()
                };
                Self::one(open_embedded(config.data_dir.join("store"), retention).await?)
            }
            (None, Backend::Etcd) => open_etcd(config).await?,
        };
        stores.own.splice(0..0, own);
        Ok(stores)
    }

    /// A store in memory in place of those that [`Stores::open`] opens, which says that it is etcd if the configured one is.
    pub(super) fn in_memory(config: &Config, main: Option<&Arc<dyn Storage>>) -> Self {
        Self {
            is_etcd: main.is_none() && config.backend == Backend::Etcd,
            ..Self::one(Memory::beginning_now())
        }
    }

    /// One store for all resources.
    pub(super) fn one(store: Arc<dyn Storage>) -> Self {
        Self {
            is_etcd: false,
            main: store,
            own: Vec::new(),
        }
    }

    /// The main store, if other servers may have it too.
    pub(super) fn shared(&self) -> Option<Arc<dyn Storage>> {
        self.main.is_shared().then(|| Arc::clone(&self.main))
    }

    /// Whether the main store is etcd.
    pub(super) fn is_etcd(&self) -> bool {
        self.is_etcd
    }

    /// A registry builder over these stores, with the kinds of every server.
    pub(super) fn registry(&self) -> RegistryBuilder {
        let mut registry = apiloom_kinds::registry(Arc::clone(&self.main));
        for (group, plural, store) in &self.own {
            registry.store_of(group, plural, Arc::clone(store));
        }
        registry
    }

    /// All stores.
    pub(super) fn all(&self) -> Vec<Arc<dyn Storage>> {
        let own = self.own.iter().map(|(_, _, store)| store);
        std::iter::once(&self.main).chain(own).cloned().collect()
    }

    /// Closes all stores.
    pub(super) async fn close(&self) {
        for store in self.all() {
            store.close().await;
        }
    }
}

async fn open_embedded(
    dir: PathBuf,
    retention: Retention,
) -> Result<Arc<dyn Storage>, ServerError> {
    // Opening reads and verifies files, so it runs on a blocking thread.
    let config = EmbeddedConfig {
        retention,
        ..EmbeddedConfig::default()
    };
    let opened = tokio::task::spawn_blocking(move || Embedded::open(&dir, config)).await;
    match opened {
        Ok(Ok(store)) => Ok(store),
        Ok(Err(error)) => Err(ServerError::Storage(error.to_string())),
        Err(error) => Err(ServerError::Storage(error.to_string())),
    }
}

#[cfg(feature = "etcd")]
async fn open_etcd(config: &Config) -> Result<Stores, ServerError> {
    let main = connect_etcd(config, &config.etcd.servers).await?;
    let mut stores = Stores {
        is_etcd: true,
        ..Stores::one(main)
    };
    for own in &config.etcd.servers_overrides {
        let store = connect_etcd(config, &own.servers).await?;
        let (group, resource) = (own.group.clone(), own.resource.clone());
        stores.own.push((group, resource, store));
    }
    Ok(stores)
}

#[cfg(feature = "etcd")]
async fn connect_etcd(
    config: &Config,
    servers: &[String],
) -> Result<Arc<dyn Storage>, ServerError> {
    use apiloom_storage::{Etcd, EtcdConfig, EtcdTls};

    let options = &config.etcd;
    let etcd = EtcdConfig {
        tls: EtcdTls {
            ca_file: options.ca_file.clone(),
            cert_file: options.cert_file.clone(),
            key_file: options.key_file.clone(),
        },
        prefix: format!("{}/", config.storage_prefix),
        compaction_interval: options.compaction_interval,
        ..EtcdConfig::new(servers)
    };
    match Etcd::connect(etcd).await {
        Ok(store) => Ok(store),
        Err(error) => Err(ServerError::Storage(error.to_string())),
    }
}

#[cfg(not(feature = "etcd"))]
async fn open_etcd(_: &Config) -> Result<Stores, ServerError> {
    Err(ServerError::Storage(super::config::WITHOUT_ETCD.to_owned()))
}
