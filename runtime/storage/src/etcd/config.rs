//! What an etcd store is told when it connects, and why it could not.

use std::path::PathBuf;
use std::time::Duration;

/// How to reach etcd, and what to do there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdConfig {
    /// The members' client URLs, the preferred one first: `https://10.0.0.1:2379`. Without a scheme, `http` is meant.
    pub servers: Vec<String>,
    /// Certificates, for servers with `https`.
    pub tls: EtcdTls,
    /// What every key of the store begins with, slash included: only changes below it are received. Default
    /// `/registry/`; empty for all of etcd's keys.
    pub prefix: String,
    /// How often history older than this is compacted, together with every other server that does so. Default 5
    /// minutes, so that history reaches back 5 to 10 minutes; `None` leaves it to others. As in kube-apiserver, a server
    /// compacts from its second interval on: where none runs for that long, set etcd's `--auto-compaction-retention`.
    pub compaction_interval: Option<Duration>,
    /// How long connecting tries before it gives up. Default 10 s.
    pub connect_timeout: Duration,
    /// How many entries of a list are asked for at a time, at least 1. Default 10,000, as Kubernetes' caches ask: etcd
    /// makes an answer whole before it sends it.
    pub list_chunk: usize,
}

impl EtcdConfig {
    /// The defaults, for these members.
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
    /// The authorities that sign the members' certificates; needed for `https`.
    pub ca_file: Option<PathBuf>,
    /// The client's certificate, intermediates behind it, where etcd asks for one.
    pub cert_file: Option<PathBuf>,
    /// The client's private key.
    pub key_file: Option<PathBuf>,
}

/// Why a store over etcd did not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// None of the members answered in time.
    #[error("no etcd could be reached within {} s at {}: {reason}", .within.as_secs(), .servers.join(", "))]
    Unreachable {
        /// All that were tried.
        servers: Vec<String>,
        /// How long it was tried.
        within: Duration,
        /// What went wrong with the last one.
        reason: String,
    },
    /// A URL that cannot be used.
    #[error("cannot use the etcd server {server:?}: {reason}")]
    Server {
        /// As given.
        server: String,
        /// Why.
        reason: String,
    },
    /// A certificate or key file that cannot be used.
    #[error("cannot use {}: {reason}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}
