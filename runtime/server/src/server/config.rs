//! What a server is told to do, as plain data, and why it could not.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use apiloom_meta::GroupResource;
use apiloom_storage::Retention;
use apiloom_storage::cache::Budget;

use crate::registry::DEFAULT_MAX_OBJECT_BYTES;

/// Where objects are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// In files below the data folder.
    Embedded,
    /// In memory; gone when the server ends.
    Memory,
    /// In etcd, which several servers share.
    Etcd,
}

impl Backend {
    const NAMES: [(&'static str, Backend); 3] = [
        ("embedded", Backend::Embedded),
        ("memory", Backend::Memory),
        ("etcd", Backend::Etcd),
    ];

    /// The backend that `--storage-backend` calls by this name.
    ///
    /// # Errors
    /// One line that lists the valid names, or says how to get a backend that this server is built without.
    pub fn from_name(name: &str) -> Result<Self, String> {
        let name = match name {
            // What kube-apiserver calls it.
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

/// What a server says that is asked for etcd and does not have it.
pub(super) const WITHOUT_ETCD: &str = "this server is built without etcd; build it with the cargo feature etcd, as `apiloom run PATH --features etcd` does";

/// Where etcd is and how it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdOptions {
    /// The client URLs of its members.
    pub servers: Vec<String>,
    /// Resources that are kept in other etcds.
    pub servers_overrides: Vec<EtcdOverride>,
    /// PEM file of the authorities that sign the members' certificates.
    pub ca_file: Option<PathBuf>,
    /// PEM file of the client's certificate.
    pub cert_file: Option<PathBuf>,
    /// PEM file of the client's private key.
    pub key_file: Option<PathBuf>,
    /// How often old history is compacted; never for `None`. Default 5 minutes.
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

/// One resource that is kept in an etcd of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdOverride {
    /// Its group; empty for the core group.
    pub group: String,
    /// Its plural.
    pub resource: String,
    /// The client URLs of the members.
    pub servers: Vec<String>,
}

impl FromStr for EtcdOverride {
    type Err = String;

    /// Reads `GROUP/RESOURCE#URL;URL`, as kube-apiserver's flag is written.
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

/// How many changes the watch cache of one resource keeps at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchCacheSize {
    /// Which.
    pub resource: GroupResource,
    /// Changes; 0 for no cache, so that every read asks the store.
    pub changes: usize,
}

impl FromStr for WatchCacheSize {
    type Err = String;

    /// Reads `RESOURCE.GROUP#SIZE`, or `RESOURCE#SIZE` for one of the core group, as kube-apiserver's flag is written.
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

/// The fraction of requests over HTTP/2 that are answered with GOAWAY, so that clients connect anew: 0 to 0.02.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoawayChance {
    pub(super) per_million: u32,
}

impl FromStr for GoawayChance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let chance: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
        if !(0.0..=0.02).contains(&chance) {
            return Err("--goaway-chance can not be less than 0 or greater than 0.02".to_owned());
        }
        // At most 20,000, so only digits without a meaning are cut off.
        let per_million = (chance * 1e6).round() as u32;
        Ok(Self { per_million })
    }
}

/// A serving certificate that the user brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM file of the certificate, intermediates behind it.
    pub certificate: PathBuf,
    /// PEM file of its private key.
    pub private_key: PathBuf,
}

/// Everything a server is told at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What the server calls itself in its messages and in the kubeconfig.
    pub name: String,
    /// Address to listen on. Default 127.0.0.1.
    pub bind_address: IpAddr,
    /// Port to serve HTTPS on; 0 picks a free one. Default 6443.
    pub secure_port: u16,
    /// Where the serving certificate is kept, and made when missing. Default `DATA_DIR/pki`.
    pub cert_dir: PathBuf,
    /// A certificate of the user's own; none by default.
    pub tls_files: Option<TlsFiles>,
    /// Where objects are kept. Default embedded.
    pub backend: Backend,
    /// Bytes of old values that the embedded store keeps. Default 1 GiB.
    pub embedded_history_bytes: u64,
    /// What every key of the store begins with, without a slash at its end. Default `/registry`.
    pub storage_prefix: String,
    /// For [`Backend::Etcd`].
    pub etcd: EtcdOptions,
    /// Folder of the store, the token and `admin.kubeconfig`.
    pub data_dir: PathBuf,
    /// Bytes of changes that the watch caches keep for watches that resume, of all resources together; `None` for no
    /// caches, so that every read asks the store. Default 64 MiB.
    pub watch_cache_history_bytes: Option<usize>,
    /// Resources whose watch caches are bounded in another way, or left out.
    pub watch_cache_sizes: Vec<WatchCacheSize>,
    /// Non-mutating requests in flight at one time, beyond which requests are refused with 429; 0 for no limit. Default
    /// 400.
    pub max_requests_inflight: usize,
    /// The same for mutating requests. Default 200.
    pub max_mutating_requests_inflight: usize,
    /// Bytes of an object as it would be stored, beyond which a write is refused with 413; 0 for no limit. Default 3 MiB.
    pub max_object_bytes: usize,
    /// Fraction of HTTP/2 requests whose clients are told to connect anew. Default none.
    pub goaway_chance: GoawayChance,
    /// Admission plugins to leave out.
    pub disabled_admission: Vec<String>,
    /// Versions and resources to serve or not.
    pub runtime_config: Vec<(String, bool)>,
    /// How much is logged, 0 to 10.
    pub verbosity: u8,
}

impl Config {
    /// The defaults for a server of this name that keeps everything below `data_dir`.
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
            etcd: EtcdOptions::default(),
            data_dir,
            embedded_history_bytes: Retention::default().max_bytes,
            watch_cache_history_bytes: Some(Budget::DEFAULT_BYTES),
            watch_cache_sizes: Vec::new(),
            max_requests_inflight: 400,
            max_mutating_requests_inflight: 200,
            max_object_bytes: DEFAULT_MAX_OBJECT_BYTES,
            goaway_chance: GoawayChance::default(),
            disabled_admission: Vec::new(),
            runtime_config: Vec::new(),
            verbosity: 0,
        }
    }
}

/// Why a server did not start, or ended. Each prints as one line that says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The registered kinds do not fit together.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
    /// A file or folder cannot be used.
    #[error("{}: {reason}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The certificate or key cannot be used.
    #[error("cannot use the serving certificate {}: {reason}", .path.display())]
    Certificate {
        /// The file at fault.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// Which.
        address: std::net::SocketAddr,
        /// Why, and what to do.
        reason: String,
    },
    /// The store cannot be opened or read.
    #[error("cannot open the store: {0}")]
    Storage(String),
    /// The clock tells a time that no object can carry.
    #[error(
        "the clock of this machine is before the year 1970 or after 9999; set it, since objects carry its time"
    )]
    Clock,
    /// The random source of the system failed.
    #[error("the system gives no random numbers")]
    Random,
}
