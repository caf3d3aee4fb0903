//! Subresources with bodies of another kind or with a handler: what their requests send and receive, and the call of the
//! handler.

use std::any::Any;
use std::sync::Arc;

use apiloom_meta::kind::Verb;
use apiloom_meta::{ApiError, Object};

use super::subresource::{SubresourceAnswer, SubresourceCall};
use super::{Bodies, Endpoint};
use crate::options::{CreateOptions, GetOptions, Preconditions};
use crate::writes::preconditions::check_present;
use crate::writes::request::WriteRequest;

impl Endpoint {
    fn bodies_of(&self, subresource: &str) -> Option<&Bodies> {
        let mut all = self.bodies.iter();
        all.find(|bodies| bodies.subresource == subresource)
    }

    /// Whether a subresource has code of its own.
    pub fn has_handler(&self, subresource: &str) -> bool {
        let bodies = self.bodies_of(subresource);
        bodies.is_some_and(|bodies| bodies.handler.is_some())
    }

    /// What requests for a subresource send: objects of this endpoint, or those of another one.
    pub fn input<'a>(self: &'a Arc<Self>, subresource: &str) -> &'a Arc<Self> {
        let bodies = self.bodies_of(subresource);
        bodies.and_then(|of| of.input.as_ref()).unwrap_or(self)
    }

    /// What requests for a subresource receive: objects of this endpoint, or those of another one.
    pub fn output<'a>(self: &'a Arc<Self>, subresource: &str) -> &'a Arc<Self> {
        let bodies = self.bodies_of(subresource);
        bodies.and_then(|of| of.output.as_ref()).unwrap_or(self)
    }

    /// All kinds of bodies of the subresources, besides the kind itself.
    pub fn other_bodies(&self) -> impl Iterator<Item = &Arc<Self>> {
        let all = self.bodies.iter();
        all.flat_map(|bodies| bodies.input.iter().chain(&bodies.output))
    }

    /// The value of the handler of a subresource with `connect`.
    pub fn connecter(&self, subresource: &str) -> Option<&Arc<dyn Any + Send + Sync>> {
        let mut all = self.connecters.iter();
        all.find(|(name, _)| name == subresource)
            .map(|(_, value)| value)
    }

    /// Calls the code of a subresource: checks and admits the body, reads the object, and returns the response.
    ///
    /// # Errors
    /// Those of the body and of the handler; NotFound if there is no object.
    pub async fn call_subresource(
        &self,
        (verb, mut body): (Verb, Option<Object>),
        request: WriteRequest<'_>,
        options: &CreateOptions,
    ) -> Result<SubresourceAnswer, ApiError> {
        let bodies = self.bodies_of(request.subresource);
        let handler = bodies.and_then(|bodies| Some((bodies, bodies.handler.as_ref()?)));
        let (bodies, handler) = handler.ok_or_else(ApiError::no_such_resource)?;
        if !handler.has(verb) {
            return Err(ApiError::no_such_resource());
        }
        if let Some(body) = &mut body {
            let input = bodies.input.as_deref().unwrap_or(self);
            input.writes.admit_body(verb, request, body).await?;
        }
        let WriteRequest {
            ctx,
            namespace,
            name,
            ..
        } = request;
        let present = GetOptions::default();
        let object = self.reads.get(ctx, namespace, name, &present).await?;
        let object = object.object()?;
        let preconditions = match &body {
            Some(body) if verb == Verb::Update => preconditions_of(body),
            Some(_) | None => Preconditions::default(),
        };
        check_present(&self.resource, request, &preconditions, &object)?;
        let call = SubresourceCall {
            writes: &self.writes,
            preconditions: &preconditions,
            request,
            options,
        };
        let mut answer = handler.call(verb, call, &object, body.as_ref()).await?;
        if let SubresourceAnswer::Object(object) = &mut answer {
            let output = bodies.output.as_deref().unwrap_or(self);
            output.resource.set_type(object);
        }
        Ok(answer)
    }
}

/// The preconditions in the metadata of a body. A resourceVersion of 0 is none, as in an update.
fn preconditions_of(body: &Object) -> Preconditions {
    let given = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    Preconditions {
        uid: given(body.uid()),
        resource_version: given(body.resource_version()).filter(|version| version != "0"),
    }
}
