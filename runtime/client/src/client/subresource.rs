//! Subresources: other objects below the path of an object, or streams of bytes.

use std::fmt;
use std::marker::PhantomData;

use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::builder::Client;
use super::encoding;
use super::object::ApiResource;
use super::patch::{Patch, PatchRequest};
use super::path;
use super::request::RawRequest;
use super::scope::ObjectScope;
use super::write::WriteRequest;
use crate::error::Error;

/// One subresource of a kind, whose objects are of the type `T`. Made by
/// [`ResourceClient::subresource`](super::ResourceClient::subresource).
///
/// `T` is encoded as it serializes: a type of a body has `apiVersion` and `kind` itself if the server needs them.
pub struct Subresource<T, S> {
    client: Client,
    resource: ApiResource,
    scope: S,
    name: String,
    object: PhantomData<fn() -> T>,
}

impl<T, S: Clone> Clone for Subresource<T, S> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            resource: self.resource.clone(),
            scope: self.scope.clone(),
            name: self.name.clone(),
            object: PhantomData,
        }
    }
}

impl<T, S: fmt::Debug> fmt::Debug for Subresource<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subresource")
            .field("resource", &self.resource)
            .field("scope", &self.scope)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<T, S: ObjectScope> Subresource<T, S> {
    pub(super) fn new(client: Client, resource: ApiResource, scope: S, name: &str) -> Self {
        Self {
            client,
            resource,
            scope,
            name: name.to_owned(),
            object: PhantomData,
        }
    }

    /// A request to the subresource of an object, for streams: `.query("follow", "true").stream()`.
    pub fn request(&self, method: Method, name: &str) -> RawRequest {
        let namespace = self.scope.namespace();
        let path = path::below(&self.resource, namespace, name, Some(&self.name));
        RawRequest::new(self.client.clone(), method, path).of(&self.resource)
    }

    fn kind(&self) -> String {
        format!("{}/{}", self.resource.plural, self.name)
    }
}

impl<T: DeserializeOwned + Send + 'static, S: ObjectScope> Subresource<T, S> {
    /// Reads the subresource of an object.
    ///
    /// # Errors
    /// Those of every request.
    pub async fn get(&self, name: &str) -> Result<T, Error> {
        self.request(Method::GET, name).json().await
    }

    /// Sends a body to the subresource of an object, whose answer is a `T`.
    pub fn create<B: Serialize + ?Sized>(&self, name: &str, body: &B) -> WriteRequest<T> {
        self.write(Method::POST, name, body)
    }

    /// Replaces the subresource of an object.
    pub fn update<B: Serialize + ?Sized>(&self, name: &str, body: &B) -> WriteRequest<T> {
        self.write(Method::PUT, name, body)
    }

    /// Changes the subresource of an object by a patch.
    pub fn patch(&self, name: &str, patch: Patch) -> PatchRequest<T> {
        let request = self.request(Method::PATCH, name);
        PatchRequest::new(WriteRequest::new(request, self.kind()), patch)
    }

    fn write<B: Serialize + ?Sized>(
        &self,
        method: Method,
        name: &str,
        body: &B,
    ) -> WriteRequest<T> {
        let request = WriteRequest::new(self.request(method, name), self.kind());
        request.with_body(encoding::json(body).map(bytes::Bytes::from))
    }
}
