//! The answer of an authenticator or an authorizer: at once, or when a future is done.

use std::fmt;
use std::pin::Pin;

use tokio::time::Instant;
use tokio::time::error::Elapsed;

/// The error of an authenticator or an authorizer.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The answer of an [`Authenticator`](super::Authenticator) or an [`Authorizer`](super::Authorizer).
///
/// One that knows its answer gives it at once, which allocates nothing; one that must ask another server or a file gives a
/// future ([`Answer::later`]).
pub enum Answer<'a, T> {
    /// The answer.
    Now(T),
    /// The answer is given when this is done.
    Later(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

impl<'a, T> Answer<'a, T> {
    /// An answer that takes time. The future is dropped when the request's time is up or its client goes away.
    pub fn later(answer: impl Future<Output = T> + Send + 'a) -> Self {
        Self::Later(Box::pin(answer))
    }

    /// Waits for the answer until the deadline.
    pub(super) async fn by(self, deadline: Instant) -> Result<T, Elapsed> {
        match self {
            Self::Now(answer) => Ok(answer),
            Self::Later(answer) => tokio::time::timeout_at(deadline, answer).await,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Answer<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(answer) => f.debug_tuple("Now").field(answer).finish(),
            Self::Later(_) => f.write_str("Later(..)"),
        }
    }
}
