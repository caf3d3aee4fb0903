//! The result of an authenticator or an authorizer, immediate or from a future.

use std::fmt;
use std::pin::Pin;

use tokio::time::Instant;
use tokio::time::error::Elapsed;

/// Error of an authenticator or an authorizer.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The result of an [`Authenticator`](super::Authenticator) or an [`Authorizer`](super::Authorizer).
///
/// A result that is known at once needs no allocation; one that needs another server or a file is a future
/// ([`Answer::later`]).
pub enum Answer<'a, T> {
    /// The result.
    Now(T),
    /// A future of the result.
    Later(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

impl<'a, T> Answer<'a, T> {
    /// The result of a future, which is dropped at the request's deadline, or if its client disconnects.
    pub fn later(answer: impl Future<Output = T> + Send + 'a) -> Self {
        Self::Later(Box::pin(answer))
    }

    /// Waits for the result until the deadline.
    pub async fn by(self, deadline: Instant) -> Result<T, Elapsed> {
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

/// The text of several errors, as Go's `errors.NewAggregate` has it: each once, in brackets if they are several.
pub fn aggregate(errors: &[String]) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for error in errors {
        if !texts.contains(&error.as_str()) {
            texts.push(error);
        }
    }
    match &texts[..] {
        [text] => (*text).to_owned(),
        texts => format!("[{}]", texts.join(", ")),
    }
}
