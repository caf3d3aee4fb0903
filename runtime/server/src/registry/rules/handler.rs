//! Handlers: the code of users that answers creates of kinds without a store.

use std::marker::PhantomData;

use apiloom_meta::{ApiError, Object, Resource};
use async_trait::async_trait;

use super::strategy::typed;
use crate::registry::options::{CreateOptions, RequestContext};

/// Answers the creates of a kind in one version whose objects are not stored, such as a review of access.
///
/// The object has its defaults, is valid, and was admitted; nothing of it is stored. With `options.dry_run` the answer is
/// the same, but nothing else may change.
///
/// ```no_run
/// # use apiloom_meta::{ApiError, Resource};
/// # use apiloom_server::registry::{CreateOptions, Handler, RequestContext};
/// # fn example<Review: Resource>() {
/// struct Echo;
///
/// #[apiloom_server::async_trait]
/// impl<Review: Resource> Handler<Review> for Echo {
///     async fn create(&self, ctx: &RequestContext, object: Review, _: &CreateOptions) -> Result<Review, ApiError> {
///         ctx.warn("nothing was reviewed");
///         Ok(object)
///     }
/// }
/// # }
/// ```
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not answer creates of `{K}`",
    note = "write `#[async_trait] impl Handler<{K}> for {Self}`"
)]
pub trait Handler<K: Resource>: Send + Sync + 'static {
    /// Answers a create. `ctx` says who asks, and takes warnings for the client.
    ///
    /// # Errors
    /// What the client is to be told in place of an object.
    async fn create(
        &self,
        ctx: &RequestContext,
        object: K,
        options: &CreateOptions,
    ) -> Result<K, ApiError>;
}

/// A [`Handler`] over documents.
#[async_trait]
pub(crate) trait ErasedHandler: Send + Sync {
    /// See [`Handler::create`].
    async fn create(
        &self,
        ctx: &RequestContext,
        object: &Object,
        options: &CreateOptions,
    ) -> Result<Object, ApiError>;
}

/// The bridge from documents to a typed handler.
pub(crate) struct TypedHandler<K, H> {
    handler: H,
    kind: PhantomData<fn() -> K>,
}

impl<K, H> TypedHandler<K, H> {
    pub(crate) fn new(handler: H) -> Self {
        Self {
            handler,
            kind: PhantomData,
        }
    }
}

#[async_trait]
impl<K: Resource, H: Handler<K>> ErasedHandler for TypedHandler<K, H> {
    async fn create(
        &self,
        ctx: &RequestContext,
        object: &Object,
        options: &CreateOptions,
    ) -> Result<Object, ApiError> {
        let object =
            typed::<K>(object).map_err(|error| ApiError::bad_request(error.to_string()))?;
        let answer = self.handler.create(ctx, object, options).await?;
        let answer = serde_json::to_value(&answer)
            .map_err(|error| ApiError::internal_text(error.to_string()))?;
        Object::from_value(answer)
            .ok_or_else(|| ApiError::internal_text("the answer of a handler is not an object"))
    }
}
