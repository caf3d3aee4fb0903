//! Subresources with code of their own: the traits that a program implements, and the calls of them.
//!
//! The body is decoded, defaulted, validated and admitted like an object of its kind; nothing is stored but by the code.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apiloom_meta::kind::{
    Resource, ResourceDef, SubresourceDef, SubresourceHandler, SubresourceOutput, Verb,
};
use apiloom_meta::{ApiError, GroupVersionKind, Object, Status};
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::options::{CreateOptions, DeleteOptions, Preconditions, RequestContext};
use crate::writes::Writes;
use crate::writes::request::WriteRequest;

/// The code of a subresource of the kind `K`, which the key `handler` of the subresource names: the kinds of its bodies.
/// Each verb of the declaration is a trait of its own: [`CreateSubresource`], [`GetSubresource`], [`UpdateSubresource`].
///
/// The server makes it with [`Default`], once for each served version. A program that gives it more, such as a key or a
/// client, gives a value to `Builder::subresource`.
///
/// ```
/// # use apiloom_meta::{ApiError, ObjectMeta, Status};
/// # use apiloom_registry::{CreateSubresource, Subresource, SubresourceRequest};
/// # use async_trait::async_trait;
/// # #[apiloom_macros::resource(group = "example.com", version = "v1", cluster, crate = apiloom_meta)]
/// # struct Machine {
/// #     metadata: ObjectMeta,
/// # }
/// #[derive(Default)]
/// struct Restarter;
///
/// impl Subresource<Machine> for Restarter {
///     type Input = Machine;
///     type Output = Status;
/// }
///
/// #[async_trait]
/// impl CreateSubresource<Machine> for Restarter {
///     async fn create(
///         &self,
///         request: &SubresourceRequest<'_, Machine>,
///         body: Machine,
///     ) -> Result<Status, ApiError> {
///         request.ctx.warn(format!("{} restarts slowly", request.name));
///         Ok(Status::success())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the code of a subresource of `{K}`",
    label = "the handler of a subresource",
    note = "write `impl Subresource<{K}> for {Self}` with the kinds of its bodies, and implement the trait of each verb"
)]
pub trait Subresource<K: Resource>: Default + Send + Sync + 'static {
    /// The kind of request bodies; for a subresource that is only read, that of its responses.
    type Input: Resource;
    /// What it responds with: an object of a kind, or a [`Status`].
    type Output: SubresourceOutput;
}

/// The verb create of a subresource: POST.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not answer the verb `create` of a subresource of `{K}`",
    label = "the handler of a subresource",
    note = "write `#[async_trait] impl CreateSubresource<{K}> for {Self}`, or remove `create` from its verbs"
)]
pub trait CreateSubresource<K: Resource>: Subresource<K> {
    /// Handles a POST. The response has the code 201. With `request.options.dry_run` it must be the same, but nothing
    /// may be changed outside of the server.
    ///
    /// # Errors
    /// The error for the client.
    async fn create(
        &self,
        request: &SubresourceRequest<'_, K>,
        body: Self::Input,
    ) -> Result<Self::Output, ApiError>;
}

/// The verb get of a subresource.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not answer the verb `get` of a subresource of `{K}`",
    label = "the handler of a subresource",
    note = "write `#[async_trait] impl GetSubresource<{K}> for {Self}`, or remove `get` from its verbs"
)]
pub trait GetSubresource<K: Resource>: Subresource<K> {
    /// Handles a GET.
    ///
    /// # Errors
    /// The error for the client.
    async fn get(&self, request: &SubresourceRequest<'_, K>) -> Result<Self::Output, ApiError>;
}

/// The verb update of a subresource: PUT.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not answer the verb `update` of a subresource of `{K}`",
    label = "the handler of a subresource",
    note = "write `#[async_trait] impl UpdateSubresource<{K}> for {Self}`, or remove `update` from its verbs"
)]
pub trait UpdateSubresource<K: Resource>: Subresource<K> {
    /// Handles a PUT. A resourceVersion and a uid in the metadata of the body are preconditions on the object
    /// ([`SubresourceRequest::preconditions`]). With `request.options.dry_run` the response must be the same, but nothing may be changed outside of
    /// the server.
    ///
    /// # Errors
    /// The error for the client.
    async fn update(
        &self,
        request: &SubresourceRequest<'_, K>,
        body: Self::Input,
    ) -> Result<Self::Output, ApiError>;
}

/// A request for a subresource of an object of the kind `K`, which exists.
#[derive(Debug)]
#[non_exhaustive]
pub struct SubresourceRequest<'a, K> {
    /// The user, and the warnings for the client.
    pub ctx: &'a RequestContext,
    /// The namespace of the object; empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// The name of the object.
    pub name: &'a str,
    /// The object, when the request began.
    pub object: Arc<K>,
    /// The options of a write; the defaults for a get.
    pub options: &'a CreateOptions,
    /// The uid and the resourceVersion of the object that the body of a PUT requires. They were met when the request began,
    /// else the client got Conflict; [`SubresourceRequest::update`] and [`SubresourceRequest::delete`] check them again.
    pub preconditions: &'a Preconditions,
    call: SubresourceCall<'a>,
    /// Whether an update has succeeded: the object has a new resourceVersion then.
    is_updated: AtomicBool,
}

impl<K: Resource> SubresourceRequest<'_, K> {
    /// Changes the object as a PUT would, or as a PUT on one of its subresources, such as `status`: with the rules, the
    /// validation and the admission of the kind, in the name of the user, without asking whether the user may do that.
    /// After a conflict the change is made again, from the new present object. Nothing is stored in a dry run.
    ///
    /// The object must meet the preconditions of the request; after the first successful update only the uid is required.
    ///
    /// # Errors
    /// Those of an update.
    pub async fn update(
        &self,
        subresource: &str,
        change: impl Fn(&mut K) + Send + Sync,
    ) -> Result<K, ApiError> {
        let change = |object: &mut Object| object.edit(|typed: &mut K| change(typed)).map(drop);
        let SubresourceCall {
            writes, request, ..
        } = self.call;
        let preconditions = self.remaining_preconditions();
        let request = request.at(subresource);
        let written = writes.edit(request, &preconditions, &change).await?;
        self.is_updated.store(true, Ordering::Relaxed);
        let typed = written.object.to_typed();
        typed.map_err(|error| ApiError::internal_text(error.to_string()))
    }

    fn remaining_preconditions(&self) -> Preconditions {
        let mut preconditions = self.preconditions.clone();
        if self.is_updated.load(Ordering::Relaxed) {
            preconditions.resource_version = None;
        }
        preconditions
    }

    /// Deletes the object, in the name of the user. Nothing is deleted in a dry run.
    ///
    /// The object must meet the preconditions of the request, as in [`SubresourceRequest::update`], where the options have
    /// none.
    ///
    /// # Errors
    /// Those of a delete.
    pub async fn delete(&self, options: &DeleteOptions) -> Result<(), ApiError> {
        let SubresourceCall {
            writes, request, ..
        } = self.call;
        let mut options = DeleteOptions {
            dry_run: options.dry_run || request.dry_run,
            ..options.clone()
        };
        let Preconditions {
            uid,
            resource_version,
        } = self.remaining_preconditions();
        let given = &mut options.preconditions;
        given.uid = given.uid.take().or(uid);
        given.resource_version = given.resource_version.take().or(resource_version);
        let WriteRequest {
            ctx,
            namespace,
            name,
            ..
        } = request;
        let deleted = writes.delete(ctx, namespace, name, &options).await;
        deleted.map(drop)
    }
}

/// A request for a subresource, before its object is decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubresourceCall<'a> {
    pub(super) writes: &'a Writes,
    pub(super) request: WriteRequest<'a>,
    pub(super) options: &'a CreateOptions,
    pub(super) preconditions: &'a Preconditions,
}

/// What the code of a subresource responded with.
#[derive(Debug)]
pub enum SubresourceAnswer {
    /// An object of the subresource's output.
    Object(Object),
    /// A Status in place of an object.
    Status(Box<Status>),
}

/// A function that decodes a request for a handler, calls it, and encodes its result.
type CallFn = for<'a> fn(
    &'a (dyn Any + Send + Sync),
    SubresourceCall<'a>,
    &'a Object,
    Option<&'a Object>,
) -> BoxFuture<'a, Result<SubresourceAnswer, ApiError>>;

/// The code of a subresource in the server's terms.
#[derive(Clone, Copy)]
struct SubresourceCode {
    input: fn() -> ResourceDef,
    output: fn() -> Option<ResourceDef>,
    create: Option<CallFn>,
    get: Option<CallFn>,
    update: Option<CallFn>,
}

/// The handler `H` of a subresource of the kind `K`, for the expansion of `subresource(..)`: each verb needs its trait.
pub struct SubresourceVerbs<K, H> {
    code: SubresourceCode,
    types: PhantomData<fn() -> (K, H)>,
}

impl<K, H> fmt::Debug for SubresourceVerbs<K, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubresourceVerbs").finish_non_exhaustive()
    }
}

/// A handler without verbs.
pub fn subresource_verbs<K: Resource, H: Subresource<K>>() -> SubresourceVerbs<K, H> {
    SubresourceVerbs {
        code: SubresourceCode {
            input: H::Input::definition,
            output: H::Output::body_definition,
            create: None,
            get: None,
            update: None,
        },
        types: PhantomData,
    }
}

impl<K: Resource, H: Subresource<K>> SubresourceVerbs<K, H> {
    /// Adds the verb create.
    #[must_use]
    pub fn create(mut self) -> Self
    where
        H: CreateSubresource<K>,
    {
        self.code.create = Some(|handler, call, object, body| {
            Box::pin(async move {
                let (handler, request) = request::<K, H>(handler, call, object)?;
                let body = input::<K, H>(body)?;
                answer(handler.create(&request, body).await?)
            })
        });
        self
    }

    /// Adds the verb get.
    #[must_use]
    pub fn get(mut self) -> Self
    where
        H: GetSubresource<K>,
    {
        self.code.get = Some(|handler, call, object, _| {
            Box::pin(async move {
                let (handler, request) = request::<K, H>(handler, call, object)?;
                answer(handler.get(&request).await?)
            })
        });
        self
    }

    /// Adds the verb update.
    #[must_use]
    pub fn update(mut self) -> Self
    where
        H: UpdateSubresource<K>,
    {
        self.code.update = Some(|handler, call, object, body| {
            Box::pin(async move {
                let (handler, request) = request::<K, H>(handler, call, object)?;
                let body = input::<K, H>(body)?;
                answer(handler.update(&request, body).await?)
            })
        });
        self
    }

    /// The subresource with this code.
    #[must_use]
    pub fn of(self, def: SubresourceDef) -> SubresourceDef {
        // The kind itself is not named; its definition has this one inside.
        let own = GroupVersionKind::new(K::GROUP, K::VERSION, K::KIND);
        let other = |kind: GroupVersionKind| (kind != own).then_some(kind);
        SubresourceDef {
            input: other(H::Input::gvk()),
            output: other(H::Output::gvk()),
            handler: Some(SubresourceHandler::new::<H>(Arc::new(self.code))),
            ..def
        }
    }
}

/// The definitions of the kinds of a subresource's bodies; none without a handler.
pub(crate) fn body_definitions(sub: &SubresourceDef) -> impl Iterator<Item = ResourceDef> + use<> {
    let handler = sub.handler.as_ref();
    let code = handler.and_then(|handler| handler.code::<SubresourceCode>());
    let definitions = code.map(|code| [Some((code.input)()), (code.output)()]);
    definitions.into_iter().flatten().flatten()
}

/// The typed handler and request of a call.
fn request<'a, K: Resource, H: Subresource<K>>(
    handler: &'a (dyn Any + Send + Sync),
    call: SubresourceCall<'a>,
    object: &Object,
) -> Result<(&'a H, SubresourceRequest<'a, K>), ApiError> {
    let handler = handler.downcast_ref();
    let handler = handler
        .ok_or_else(|| ApiError::internal_text("a handler has another type than its name"))?;
    let object = object
        .typed()
        .map_err(|error| ApiError::internal_text(error.to_string()))?;
    let request = SubresourceRequest {
        ctx: call.request.ctx,
        namespace: call.request.namespace.unwrap_or_default(),
        name: call.request.name,
        object,
        options: call.options,
        preconditions: call.preconditions,
        call,
        is_updated: AtomicBool::new(false),
    };
    Ok((handler, request))
}

/// The typed body of a call.
fn input<K: Resource, H: Subresource<K>>(body: Option<&Object>) -> Result<H::Input, ApiError> {
    let body = body.map(Object::to_typed).transpose();
    let body = body.map_err(|error| ApiError::bad_request(error.to_string()))?;
    body.ok_or_else(|| ApiError::bad_request("the request has no body"))
}

fn answer<T: SubresourceOutput>(output: T) -> Result<SubresourceAnswer, ApiError> {
    let json = |value: serde_json::Result<Value>| {
        value.map_err(|error| ApiError::internal_text(error.to_string()))
    };
    let value = json(serde_json::to_value(&output))?;
    if T::body_definition().is_none() {
        let status = serde_json::from_value(value);
        let status = status.map_err(|error| ApiError::internal_text(error.to_string()))?;
        return Ok(SubresourceAnswer::Status(Box::new(status)));
    }
    let object = Object::from_value(value);
    let object = object
        .ok_or_else(|| ApiError::internal_text("the answer of a handler is not an object"))?;
    Ok(SubresourceAnswer::Object(object))
}

/// The handlers that the program gave to the builder, by type.
#[derive(Clone, Default)]
pub(crate) struct GivenHandlers(HashMap<TypeId, (&'static str, Arc<dyn Any + Send + Sync>)>);

impl fmt::Debug for GivenHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.values().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}

impl GivenHandlers {
    pub(crate) fn insert<H: Send + Sync + 'static>(&mut self, handler: H) {
        let given = (std::any::type_name::<H>(), Arc::new(handler) as Arc<_>);
        self.0.insert(TypeId::of::<H>(), given);
    }

    /// The problems of handlers that no subresource names.
    pub(crate) fn problems(&self, defs: &[Arc<ResourceDef>]) -> Vec<String> {
        let named = |id: TypeId| {
            let mut all = defs.iter().flat_map(|def| &def.subresources);
            all.any(|sub| sub.handler.as_ref().is_some_and(|of| of.type_id() == id))
        };
        let unnamed = self.0.iter().filter(|(id, _)| !named(**id));
        let mut problems: Vec<String> = unnamed
            .map(|(_, (name, _))| format!("a handler {name}, which no subresource names"))
            .collect();
        problems.sort();
        problems
    }

    /// The given value of a handler, or a new one.
    pub(crate) fn value_of(&self, handler: &SubresourceHandler) -> Arc<dyn Any + Send + Sync> {
        let given = self.0.get(&handler.type_id());
        given.map_or_else(|| handler.make(), |(_, value)| Arc::clone(value))
    }
}

/// A handler and its code.
pub(super) struct Handler {
    value: Arc<dyn Any + Send + Sync>,
    code: SubresourceCode,
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").finish_non_exhaustive()
    }
}

impl Handler {
    /// The handler of a subresource; `None` if it has none. A given one is used in place of the default.
    pub(super) fn of(def: &SubresourceDef, given: &GivenHandlers) -> Option<Self> {
        let handler = def.handler.as_ref()?;
        let code: SubresourceCode = *handler.code()?;
        let value = given.value_of(handler);
        Some(Self { value, code })
    }
    /// The function of a verb; `None` for a verb that it does not have.
    fn call_of(&self, verb: Verb) -> Option<CallFn> {
        match verb {
            Verb::Create => self.code.create,
            Verb::Update => self.code.update,
            Verb::Get => self.code.get,
            _ => None,
        }
    }
    /// Whether it has a verb.
    pub(super) fn has(&self, verb: Verb) -> bool {
        self.call_of(verb).is_some()
    }
    /// Calls the code of a verb.
    ///
    /// # Errors
    /// Those of the code; NotFound for a verb that it does not have.
    pub(super) async fn call(
        &self,
        verb: Verb,
        call: SubresourceCall<'_>,
        object: &Object,
        body: Option<&Object>,
    ) -> Result<SubresourceAnswer, ApiError> {
        let function = self.call_of(verb).ok_or_else(ApiError::no_such_resource)?;
        function(&*self.value, call, object, body).await
    }
    /// The definition of request bodies.
    pub(super) fn input(&self) -> ResourceDef {
        (self.code.input)()
    }
    /// The definition of responses; `None` for a Status.
    pub(super) fn output(&self) -> Option<ResourceDef> {
        (self.code.output)()
    }
}
