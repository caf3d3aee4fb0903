//! What a server is told to do, as plain data, and why it could not.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// Where objects are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// In files below the data folder.
    Embedded,
    /// In memory; gone when the server ends.
    Memory,
}

impl Backend {
    const NAMES: [(&'static str, Backend); 2] =
        [("embedded", Backend::Embedded), ("memory", Backend::Memory)];

    /// The backend that `--storage-backend` calls by this name.
    ///
    /// # Errors
    /// One line that lists the valid names.
    pub fn from_name(name: &str) -> Result<Self, String> {
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
    /// Folder of the store, the token and `admin.kubeconfig`.
    pub data_dir: PathBuf,
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
            data_dir,
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
    /// The random source of the system failed.
    #[error("the system gives no random numbers")]
    Random,
}
