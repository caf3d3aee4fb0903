//! Writers: users' code for create, update, patch and delete of kinds without a store.

use std::marker::PhantomData;

use apiloom_meta::kind::Verb;
use apiloom_meta::{ApiError, Object, Resource};
use async_trait::async_trait;

use super::reader::unsupported;
use crate::objects::code::{Write, decoded, encoded};
use crate::options::{CreateOptions, DeleteOptions, RequestContext, UpdateOptions};

/// Create, update, patch and delete of one version of a kind without a store (`store = code`), beside a
/// [`Reader`](crate::Reader).
///
/// The server does what comes before, as for stored kinds: it decodes, defaults and validates the object, runs admission and
/// the strategy, makes the change of a patch or an apply on the present object, which it reads with the reader, and checks
/// preconditions and the size limit of objects. The code keeps the object, and returns it as it is then, with a new
/// resourceVersion. In a dry run, which the options tell, it returns the same but keeps nothing.
///
/// Two requests may read the same present object. A writer that does not want one of them to be lost answers Conflict if the
/// object is no longer what `old` is; patches are then made again, up to five times.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not write objects of `{K}`",
    note = "write `#[async_trait] impl Writer<{K}> for {Self}`"
)]
pub trait Writer<K: Resource>: Send + Sync + 'static {
    /// The verbs that it answers, of create, update, patch and delete. The definition of the kind has the same ones, or the
    /// server does not start; it may have deletecollection too, which lists and deletes. All but create need the verb get.
    const VERBS: &'static [Verb];

    /// Creates an object, whose name, uid and creation time are set. Not called for an apply or an update that finds no object
    /// unless `VERBS` has create.
    ///
    /// # Errors
    /// The error for the client, AlreadyExists if there is such an object: an apply is then made again, of that object, and a
    /// create with another generated name. Default MethodNotAllowed.
    async fn create(
        &self,
        ctx: &RequestContext,
        object: K,
        options: &CreateOptions,
    ) -> Result<K, ApiError> {
        let _ = (ctx, object, options);
        Err(unsupported::<K>(Verb::Create))
    }

    /// Replaces an object, for an update, a patch or an apply. Not called if nothing changes.
    ///
    /// # Errors
    /// The error for the client, Conflict if the present object is another one than `old`. Default MethodNotAllowed.
    async fn update(
        &self,
        ctx: &RequestContext,
        old: K,
        new: K,
        options: &UpdateOptions,
    ) -> Result<K, ApiError> {
        let _ = (ctx, old, new, options);
        Err(unsupported::<K>(Verb::Update))
    }

    /// Deletes an object, whose preconditions were checked. Returns it if it is not gone yet.
    ///
    /// # Errors
    /// The error for the client. Default MethodNotAllowed.
    async fn delete(
        &self,
        ctx: &RequestContext,
        object: K,
        options: &DeleteOptions,
    ) -> Result<Option<K>, ApiError> {
        let _ = (ctx, object, options);
        Err(unsupported::<K>(Verb::Delete))
    }
}

/// Adapter from documents to a typed writer.
pub(crate) struct TypedWriter<K, W> {
    writer: W,
    kind: PhantomData<fn() -> K>,
}

impl<K, W> TypedWriter<K, W> {
    pub(crate) fn new(writer: W) -> Self {
        Self {
            writer,
            kind: PhantomData,
        }
    }
}

#[async_trait]
impl<K: Resource, W: Writer<K>> Write for TypedWriter<K, W> {
    fn verbs(&self) -> &'static [Verb] {
        W::VERBS
    }

    async fn create(
        &self,
        ctx: &RequestContext,
        object: &Object,
        options: &CreateOptions,
    ) -> Result<Object, ApiError> {
        encoded(&self.writer.create(ctx, decoded(object)?, options).await?)
    }

    async fn update(
        &self,
        ctx: &RequestContext,
        old: &Object,
        new: &Object,
        options: &UpdateOptions,
    ) -> Result<Object, ApiError> {
        let (old, new) = (decoded(old)?, decoded(new)?);
        encoded(&self.writer.update(ctx, old, new, options).await?)
    }

    async fn delete(
        &self,
        ctx: &RequestContext,
        object: &Object,
        options: &DeleteOptions,
    ) -> Result<Option<Object>, ApiError> {
        let left = self.writer.delete(ctx, decoded(object)?, options).await?;
        left.as_ref().map(encoded).transpose()
    }
}
