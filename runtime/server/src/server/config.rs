//! Configuration of a server, as plain data, and the errors of its start.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use apiloom_http::Endpoints;
use apiloom_http::request::timeout::REQUEST_TIMEOUT;
use apiloom_meta::GroupResource;
use apiloom_registry::{
    DEFAULT_DELETE_COLLECTION_WORKERS, DEFAULT_EVENT_TTL, DEFAULT_MAX_OBJECT_BYTES,
    EmulationVersion, StorageMediaType, default_history_bytes, default_max_definition_bytes,
};
use apiloom_storage::Retention;

use super::controller_names::ControllerNames;

/// Storage backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Files below the data directory.
    Embedded,
    /// Memory; the objects are lost when the server ends.
    Memory,
    /// Etcd, which several servers can share.
    Etcd,
}

impl Backend {
    const NAMES: [(&'static str, Backend); 3] = [
        ("embedded", Backend::Embedded),
        ("memory", Backend::Memory),
        ("etcd", Backend::Etcd),
    ];

    /// The backend with this name, as in `--storage-backend`.
    ///
    /// # Errors
    /// One line with the valid names, or with the way to build a server that has this backend.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let name = match name {
            // The name in kube-apiserver.
            "etcd3" => "etcd",
            "etcd2" => {
                return Err(
                    "etcd's version 2 API is retired; use the storage backend etcd or embedded"
                        .to_owned(),
                );
            }
            name => name,
        };
        if name == "etcd" && !cfg!(feature = "etcd") {
            return Err(WITHOUT_ETCD.to_owned());
        }
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, backend)| *backend)
            .ok_or_else(|| {
                let valid: Vec<&str> = Self::NAMES.iter().map(|(known, _)| *known).collect();
                format!(
                    "unknown storage backend {name:?}; --storage-backend takes one of: {}",
                    valid.join(", ")
                )
            })
    }
}

/// Error text for etcd in a server that was built without it.
pub(super) const WITHOUT_ETCD: &str = "this server is built without etcd; build it with the cargo feature etcd, as `apiloom run PATH --features etcd` does";

/// Addresses and credentials of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdOptions {
    /// Client URLs of the members.
    pub servers: Vec<String>,
    /// Resources that are stored in other etcd clusters.
    pub servers_overrides: Vec<EtcdOverride>,
    /// PEM file of the certificate authorities of the members.
    pub ca_file: Option<PathBuf>,
    /// PEM file of the client certificate.
    pub cert_file: Option<PathBuf>,
    /// PEM file of the client certificate's key.
    pub key_file: Option<PathBuf>,
    /// Interval of compaction requests, and age of the history that they remove; `None` for none. Default 5 minutes.
    pub compaction_interval: Option<Duration>,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            servers_overrides: Vec::new(),
            ca_file: None,
            cert_file: None,
            key_file: None,
            compaction_interval: Some(Duration::from_secs(300)),
        }
    }
}

/// A resource that is stored in an etcd cluster of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdOverride {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural name.
    pub resource: String,
    /// Client URLs of the members.
    pub servers: Vec<String>,
}

impl FromStr for EtcdOverride {
    type Err = String;

    /// Parses `GROUP/RESOURCE#URL;URL`, the syntax of kube-apiserver's flag.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('#').and_then(|(resource, servers)| {
            let (group, resource) = resource.split_once('/')?;
            Some((group, resource, servers))
        });
        match parts {
            Some((group, resource, servers)) if !resource.is_empty() && !servers.is_empty() => {
                Ok(Self {
                    group: group.to_owned(),
                    resource: resource.to_owned(),
                    servers: servers.split(';').map(str::to_owned).collect(),
                })
            }
            _ => Err("it must be of the form GROUP/RESOURCE#URL;URL".to_owned()),
        }
    }
}

/// Watch cache size of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchCacheSize {
    /// Group and plural name.
    pub resource: GroupResource,
    /// Maximum number of changes in the cache; 0 for no cache, so that all reads go to the store.
    pub changes: usize,
}

impl FromStr for WatchCacheSize {
    type Err = String;

    /// Parses `RESOURCE.GROUP#SIZE`, or `RESOURCE#SIZE` for the core group, the syntax of kube-apiserver's flag.
    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            "it must be of the form RESOURCE.GROUP#SIZE, where SIZE is a number of changes and 0 turns the cache off, \
            such as flunders.wardle.example.com#500"
        };
        let (resource, size) = text.split_once('#').ok_or_else(form)?;
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let changes = size.parse().map_err(|_| form())?;
        if resource.is_empty() || resource.contains('/') {
            return Err(form().to_owned());
        }
        Ok(Self {
            resource: GroupResource::new(group, resource),
            changes,
        })
    }
}

/// Fraction of HTTP/2 requests that are answered with GOAWAY, so that clients reconnect: 0 to 0.02.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoawayChance {
    pub(super) per_million: u32,
}

impl FromStr for GoawayChance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let chance: f64 = text
            .parse()
            .map_err(|_| format!("{text:?} is not a number"))?;
        if !(0.0..=0.02).contains(&chance) {
            return Err("--goaway-chance can not be less than 0 or greater than 0.02".to_owned());
        }
        // At most 20,000, so the conversion loses nothing.
        let per_million = (chance * 1e6).round() as u32;
        Ok(Self { per_million })
    }
}

/// A certificate in files of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM file of the certificate, followed by intermediate certificates.
    pub certificate: PathBuf,
    /// PEM file of the private key.
    pub private_key: PathBuf,
}

/// Configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name of the server in its messages and in the kubeconfig.
    pub name: String,
    /// Address to listen on. Default 127.0.0.1.
    pub bind_address: IpAddr,
    /// Port for HTTPS; 0 for a free one. Default 6443.
    pub secure_port: u16,
    /// Directory of the serving certificate, which is generated if it is missing. Default `DATA_DIR/pki`.
    pub cert_dir: PathBuf,
    /// Files of a serving certificate, in place of a generated one. Default none.
    pub tls_files: Option<TlsFiles>,
    /// Storage backend. Default embedded.
    pub backend: Backend,
    /// Maximum size of the history of the embedded store, in bytes. Default 1 GiB.
    pub embedded_history_bytes: u64,
    /// Prefix of all keys in the store, without a slash at its end. Default `/registry`.
    pub storage_prefix: String,
    /// Options for [`Backend::Etcd`].
    pub etcd: EtcdOptions,
    /// Format in which objects are stored (`--storage-media-type`); JSON by default.
    pub storage_media_type: StorageMediaType,
    /// Directory of the embedded store, the token and `admin.kubeconfig`.
    pub data_dir: PathBuf,
    /// File for the administrator's kubeconfig, in place of `DATA_DIR/admin.kubeconfig`. Another server's file, or one with
    /// more in it, is not overwritten. Default none.
    pub kubeconfig: Option<PathBuf>,
    /// Memory limit for the history of all watch caches together, in bytes; `None` for no caches, so that all reads go
    /// to the store. Default 64 MiB, or a sixteenth of the memory that the process may have.
    pub watch_cache_history_bytes: Option<usize>,
    /// Watch cache sizes of single resources.
    pub watch_cache_sizes: Vec<WatchCacheSize>,
    /// Maximum number of non-mutating requests in flight; further ones are rejected with 429. 0 for no limit. Default
    /// 400.
    pub max_requests_inflight: usize,
    /// Maximum number of mutating requests in flight. Default 200.
    pub max_mutating_requests_inflight: usize,
    /// Maximum size of an object in bytes of JSON; larger writes are rejected with 413. 0 for no limit. Default 3 MiB.
    pub max_object_bytes: usize,
    /// Maximum memory that all CustomResourceDefinitions together may make the server keep, in bytes, estimated from their schemas:
    /// what does not fit is refused. Default 512 MiB, or an eighth of the memory that the process may have.
    pub max_definition_bytes: usize,
    /// How many objects a deletecollection deletes at the same time. Default 16.
    pub delete_collection_workers: NonZeroUsize,
    /// How long events are kept after their last write (`--event-ttl`); one hour by default, zero for ever.
    pub event_ttl: Duration,
    /// Namespaces that the server creates beside `default`, when it starts and again when they are gone. `None`, the default,
    /// for those of Kubernetes where built-in kinds are served.
    pub system_namespaces: Option<Vec<String>>,
    /// Longest time of requests that are not long-running, such as watches; a `timeout` in the query can only shorten it.
    /// Also the longest time for which the end of the server waits for requests in flight. Default 1 minute.
    pub request_timeout: Duration,
    /// Time between the signal to stop and the end of new connections, in which everything but `/readyz` is answered as
    /// before, so that load balancers can go elsewhere. Default 0.
    pub shutdown_delay: Duration,
    /// Fraction of HTTP/2 requests that are answered with GOAWAY. Default 0.
    pub goaway_chance: GoawayChance,
    /// Names of admission plugins to disable.
    pub disabled_admission: Vec<String>,
    /// Versions and resources to enable or disable, see
    /// [`RegistryBuilder::runtime_config`](apiloom_registry::RegistryBuilder::runtime_config).
    pub runtime_config: Vec<(String, bool)>,
    /// Releases of groups to emulate, see
    /// [`RegistryBuilder::emulation_versions`](apiloom_registry::RegistryBuilder::emulation_versions). Default none.
    pub emulation_versions: Vec<EmulationVersion>,
    /// File with the addresses of services, a [`ServiceMap`](super::services::ServiceMap), for instance of conversion webhooks.
    /// Default none: services are found by the DNS of a cluster.
    pub service_resolver: Option<PathBuf>,
    /// Which documents of its own the server answers. Default all.
    pub endpoints: Endpoints,
    /// Which of the parts' controllers run that one server at a time runs. Default all.
    pub controllers: ControllerNames,
    /// Log verbosity, 0 to 10.
    pub verbosity: u8,
}

impl Config {
    /// The default configuration of a server with this name that keeps everything below `data_dir`.
    pub fn new(name: impl Into<String>, data_dir: impl Into<PathBuf>) -> Self {
        let data_dir = data_dir.into();
        Self {
            name: name.into(),
            bind_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            secure_port: 6443,
            cert_dir: data_dir.join("pki"),
            tls_files: None,
            backend: Backend::Embedded,
            storage_prefix: "/registry".to_owned(),
            storage_media_type: StorageMediaType::default(),
            etcd: EtcdOptions::default(),
            data_dir,
            kubeconfig: None,
            embedded_history_bytes: Retention::default().max_bytes,
            watch_cache_history_bytes: Some(default_history_bytes()),
            watch_cache_sizes: Vec::new(),
            max_requests_inflight: 400,
            max_mutating_requests_inflight: 200,
            max_object_bytes: DEFAULT_MAX_OBJECT_BYTES,
            max_definition_bytes: default_max_definition_bytes(),
            delete_collection_workers: DEFAULT_DELETE_COLLECTION_WORKERS,
            event_ttl: DEFAULT_EVENT_TTL,
            system_namespaces: None,
            request_timeout: REQUEST_TIMEOUT,
            shutdown_delay: Duration::ZERO,
            goaway_chance: GoawayChance::default(),
            disabled_admission: Vec::new(),
            runtime_config: Vec::new(),
            emulation_versions: Vec::new(),
            service_resolver: None,
            endpoints: Endpoints::default(),
            controllers: ControllerNames::default(),
            verbosity: 0,
        }
    }
}

/// Why a server did not start, or ended. Prints as one line, with the remedy where there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The registered kinds have problems, one line each.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
    /// A file or directory cannot be used.
    #[error("{}: {reason}", .path.display())]
    File {
        /// Path of the file or directory.
        path: PathBuf,
        /// Reason and remedy.
        reason: String,
    },
    /// The certificate or key cannot be used.
    #[error("cannot use the serving certificate {}: {reason}", .path.display())]
    Certificate {
        /// Path of the file with the problem.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Reason and remedy.
        reason: String,
    },
    /// The store cannot be opened or read.
    #[error("cannot open the store: {0}")]
    Storage(String),
    /// The clock shows a time outside the range of objects.
    #[error(
        "the clock of this machine is before the year 1970 or after 9999; set it, since objects carry its time"
    )]
    Clock,
    /// The operating system's random source failed.
    #[error("the operating system's random source failed")]
    Random,
}
