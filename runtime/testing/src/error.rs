//! [`TestError`]: what can fail of a test server.

use apiloom_meta::ApiError;
use apiloom_server::ServerError;
use apiloom_storage::StorageError;

/// Why a test server did not start, or did not do what the test wanted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// The server did not start, for example because of a kind with a problem.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// An object of the builder was refused.
    #[error("cannot create {what}: {source}")]
    Object {
        /// Resource and name.
        what: String,
        /// The refusal.
        source: Box<apiloom_client::Error>,
    },
    /// An object of the builder cannot be encoded.
    #[error("cannot encode {0}: {1}")]
    Encode(String, #[source] serde_json::Error),
    /// The store refused, or is closed.
    #[error("cannot use the store of the test server: {0}")]
    Storage(#[from] StorageError),
    /// The kind is not served, or a name is malformed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// A port or a file cannot be used.
    #[error("{0}: {1}")]
    Io(String, #[source] std::io::Error),
}
