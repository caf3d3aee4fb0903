//! Handlers: users' code for creates of kinds without a store.

use apiloom_meta::kind::Verb;
use apiloom_meta::{ApiError, Resource};
use async_trait::async_trait;

use super::writer::Writer;
use crate::options::{CreateOptions, RequestContext};

/// Handler of creates for one version of a kind without a store, such as an access review.
///
/// The object is defaulted, validated and admitted; nothing is stored. With `options.dry_run` the response must be the
/// same, but the handler must have no side effects.
///
/// ```no_run
/// # use apiloom_meta::{ApiError, Resource};
/// # use apiloom_registry::{CreateOptions, Handler, RequestContext};
/// # use async_trait::async_trait;
/// # fn example<Review: Resource>() {
/// struct Echo;
///
/// #[async_trait]
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

/// A handler as a writer that only creates.
pub(crate) struct CreateOnly<H>(pub(crate) H);

#[async_trait]
impl<K: Resource, H: Handler<K>> Writer<K> for CreateOnly<H> {
    const VERBS: &'static [Verb] = &[Verb::Create];

    async fn create(
        &self,
        ctx: &RequestContext,
        object: K,
        options: &CreateOptions,
    ) -> Result<K, ApiError> {
        self.0.create(ctx, object, options).await
    }
}
