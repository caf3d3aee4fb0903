//! The one loop that repeats a write until it is done or judged by what is stored.
//!
//! A write may begin with what the cache has, since it only happens if the object is still at that revision. What it may
//! not do is to refuse, or to leave a write out, for what the cache says: that is judged again by what is stored.

use apiloom_meta::ApiError;
use apiloom_storage::StorageError;

use super::Writes;
use crate::registry::objects::document::Encoded;
use crate::registry::objects::present::Present;

/// What became of one attempt to write.
pub(crate) enum Attempt<T> {
    /// It is done.
    Done(T),
    /// Something else was written meanwhile; this is there now.
    Raced(Option<Present>),
    /// The write is refused, or nothing is to be written for it. This holds as far as what it was judged by is certain.
    Judged(Result<T, ApiError>),
}

impl Writes {
    /// Attempts a write until it succeeds or the stored object decides against it. Each attempt starts from the present
    /// object. A failed attempt means that another write succeeded, so the loop ends; so it does with the request's deadline.
    ///
    /// # Errors
    /// Of the attempts and of the store.
    pub(crate) async fn carry_out<T, F>(
        &self,
        key: &str,
        operation: &str,
        mut attempt: impl FnMut(Option<Present>) -> F,
    ) -> Result<T, ApiError>
    where
        F: Future<Output = Result<Attempt<T>, ApiError>>,
    {
        let mut present = self.present(key, operation).await?;
        loop {
            // That nothing is there, only the store says.
            let certain = present.as_ref().is_none_or(Present::is_certain);
            present = match attempt(present).await? {
                Attempt::Done(done) => return Ok(done),
                Attempt::Raced(present) => present,
                Attempt::Judged(judged) if certain => return judged,
                Attempt::Judged(_) => self.stored(key, operation).await?,
            };
        }
    }

    /// A write that the store refused.
    pub(crate) fn raced<T>(
        &self,
        error: StorageError,
        operation: &str,
    ) -> Result<Attempt<T>, ApiError> {
        match error {
            StorageError::Conflict { present, .. } => {
                Ok(Attempt::Raced(present.map(Present::Stored)))
            }
            other => Err(self.resource.kind.error(other, operation)),
        }
    }

    /// What is under a key, from where it costs least.
    ///
    /// # Errors
    /// Of the store.
    pub(crate) async fn present(
        &self,
        key: &str,
        operation: &str,
    ) -> Result<Option<Present>, ApiError> {
        let cached = self.resource.cache.as_ref().and_then(|cache| {
            let state = cache.snapshot();
            Encoded::new(state.get(key)?, None).ok()
        });
        match cached {
            Some(cached) => Ok(Some(Present::Cached(cached))),
            None => self.stored(key, operation).await,
        }
    }

    /// What is stored under a key.
    ///
    /// # Errors
    /// Of the store.
    pub(crate) async fn stored(
        &self,
        key: &str,
        operation: &str,
    ) -> Result<Option<Present>, ApiError> {
        let entry = self.resource.kind.get(key, operation).await?;
        Ok(entry.map(|entry| Present::Stored(Box::new(entry))))
    }
}
