//! Handlers: users' code for creates of kinds without a store.

use std::marker::PhantomData;

use apiloom_meta::{ApiError, Object, Resource};
use async_trait::async_trait;

use crate::registry::objects::hooks::ErasedHandler;
use crate::registry::options::{CreateOptions, RequestContext};

/// Handler of creates for one version of a kind without a store, such as an access review.
///
/// The object is defaulted, validated and admitted; nothing is stored. With `options.dry_run` the response must be the
/// same, but the handler must have no side effects.
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
    /// Handles a create. `ctx` has the user, and collects warnings for the client.
    ///
    /// # Errors
    /// The error for the client.
    async fn create(
        &self,
        ctx: &RequestContext,
        object: K,
        options: &CreateOptions,
    ) -> Result<K, ApiError>;
}

/// Adapter from documents to a typed handler.
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
        let object = object
            .to_typed::<K>()
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let answer = self.handler.create(ctx, object, options).await?;
        let answer = serde_json::to_value(&answer)
            .map_err(|error| ApiError::internal_text(error.to_string()))?;
        Object::from_value(answer)
            .ok_or_else(|| ApiError::internal_text("the answer of a handler is not an object"))
    }
}
