//! Requests to the writing thread.

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::op::Op;
use crate::{Revision, StorageError};

/// Where the answer to a request goes.
pub(super) type Answer<T> = oneshot::Sender<Result<T, StorageError>>;

/// A request to the writer.
#[derive(Debug)]
pub(super) enum Request {
    Write {
        key: String,
        op: Op,
        reply: Answer<Revision>,
        /// The request's share of the queue's budget.
        permit: Option<OwnedSemaphorePermit>,
    },
    Compact {
        revision: Revision,
        reply: Answer<()>,
    },
    /// The upkeep thread has finished a checkpoint of the log as it was when it started.
    Checkpointed,
    Close {
        reply: Option<oneshot::Sender<()>>,
    },
}
