//! The configuration of an etcd store, and the errors of connecting.

use std::path::PathBuf;
use std::time::Duration;

/// How to connect to etcd, and how to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdConfig {
    /// The members' client URLs, the preferred one first: `https://10.0.0.1:2379`. Without a scheme, `http` is meant.
    pub servers: Vec<String>,
    /// Certificates, for servers with `https`.
    pub tls: EtcdTls,
    /// The prefix of every key of the store, slash included: only changes below it are received. Default `/registry/`;
    /// empty for all of etcd's keys.
    pub prefix: String,
    /// How often history older than this is compacted, together with every other server that does so. Default 5
    /// minutes, so that history reaches back 5 to 10 minutes; `None` leaves it to others. As in kube-apiserver, a server
    /// compacts from its second interval on: where none runs for that long, set etcd's `--auto-compaction-retention`.
    pub compaction_interval: Option<Duration>,
    /// Timeout for connecting. Default 10 s.
    pub connect_timeout: Duration,
    /// Page size of lists, at least 1. Default 10,000, as in Kubernetes' caches: etcd builds a whole response in memory
    /// before it sends it.
    pub list_chunk: usize,
}

impl EtcdConfig {
    /// The default configuration for these members.
    pub fn new(servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            tls: EtcdTls::default(),
            prefix: "/registry/".to_owned(),
            compaction_interval: Some(Duration::from_secs(300)),
            connect_timeout: Duration::from_secs(10),
            list_chunk: 10_000,
        }
    }
}

/// PEM files for TLS to etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdTls {
    /// The certificate authorities of the members' certificates; needed for `https`.
    pub ca_file: Option<PathBuf>,
    /// The client certificate, followed by its intermediates, if etcd requires one.
    pub cert_file: Option<PathBuf>,
    /// The private key of the client certificate.
    pub key_file: Option<PathBuf>,
}

/// Why connecting to etcd failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// None of the members answered in time.
    #[error("no etcd could be reached within {} s at {}: {reason}", .within.as_secs(), .servers.join(", "))]
    Unreachable {
        /// The URLs that were tried.
        servers: Vec<String>,
        /// The timeout.
        within: Duration,
        /// The error of the last attempt.
        reason: String,
    },
    /// A URL is invalid.
    #[error("cannot use the etcd server {server:?}: {reason}")]
    Server {
        /// The URL as given.
        server: String,
        /// What is wrong with the URL.
        reason: String,
    },
    /// A certificate or key file cannot be used.
    #[error("cannot use {}: {reason}", .path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of reading or parsing it.
        reason: String,
    },
}
