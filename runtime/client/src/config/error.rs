//! What is wrong with a configuration.

use std::path::PathBuf;

use crate::transport::HttpTransportError;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
    /// A file or a value of it is malformed, or not supported.
    #[error("{0}")]
    Malformed(String),
    /// There is no configuration where it was looked for.
    #[error("{0}")]
    Missing(String),
    /// The URL or the TLS options cannot be used.
    #[error(transparent)]
    Transport(#[from] HttpTransportError),
    /// The settings of the client cannot be used.
    #[error(transparent)]
    Client(#[from] crate::error::Error),
}
