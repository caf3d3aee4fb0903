//! How an election reads and writes its lease.

use futures_util::future::BoxFuture;

use super::lease::Lease;

/// Reads and writes one lease.
pub trait LeaseStore: Send + Sync {
    /// The lease; `None` if it does not exist.
    ///
    /// # Errors
    /// If the server did not answer, or refused.
    fn get(&self) -> BoxFuture<'_, Result<Option<Lease>, LeaseError>>;

    /// Creates the lease. Its metadata is empty: name and namespace are the store's.
    ///
    /// # Errors
    /// [`LeaseError::Conflict`] if it exists, others if it is not known whether it was created.
    fn create(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>>;

    /// Replaces the lease, whose resourceVersion is that which was read.
    ///
    /// # Errors
    /// [`LeaseError::Conflict`] if it has another resourceVersion now, others if it is not known whether it was written.
    fn update(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>>;
}

/// Why a lease was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another program wrote it in between.
    #[error("the lease was changed in between")]
    Conflict,
    /// The server refused the request, and will refuse the same one again: the namespace of the lease does not exist, Leases
    /// are not served, or this user may not write them.
    #[error("the server refuses the lease: {0}")]
    Refused(String),
    /// Any other reason.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}
