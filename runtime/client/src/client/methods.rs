//! The requests of generated methods: to a subresource, or with other types than those of the kind.

use std::marker::PhantomData;

use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::encoding;
use super::list::{GetRequest, ListRequest, ListSource};
use super::object::{ApiObject, Kind};
use super::options::ListOptions;
use super::patch::{Patch, PatchRequest};
use super::path;
use super::request::RawRequest;
use super::resource::ResourceClient;
use super::scope::ObjectScope;
use super::write::WriteRequest;

mod declare;

mod sealed {
    pub trait Sealed {}
}

impl<K, S> sealed::Sealed for ResourceClient<K, S> {}

/// A client in which a name stands for one object, with the requests that the traits of [`methods!`](crate::methods) are made
/// of: each method of those calls one of these. The key `method(..)` of a kind, and its subresources, decide which there are.
///
/// `subresource` is the last part of the path; `None` is the object itself. The kind `B` of a body gives it `apiVersion` and
/// `kind`; the response is decoded as `T`.
pub trait ObjectClient: sealed::Sealed {
    /// GET of an object or a subresource.
    fn get_as<T: DeserializeOwned>(&self, subresource: Option<&str>, name: &str) -> GetRequest<T>;

    /// GET of the objects, or of a subresource that is a list.
    fn list_as<T: ApiObject>(&self, of_object: Option<(&str, &str)>) -> ListRequest<T>;

    /// POST to the objects, or to a subresource of one: its name, and that of the object.
    fn create_as<B: Kind, T>(&self, of_object: Option<(&str, &str)>, body: &B) -> WriteRequest<T>;

    /// PUT of an object or a subresource.
    fn update_as<B: Kind, T>(
        &self,
        subresource: Option<&str>,
        name: &str,
        body: &B,
    ) -> WriteRequest<T>;

    /// PATCH of an object or a subresource.
    fn patch_as<T>(&self, subresource: Option<&str>, name: &str, patch: Patch) -> PatchRequest<T>;

    /// Server-side apply to an object or a subresource of a configuration of the kind `B`; see [`ResourceClient::apply`].
    fn apply_as<B: Kind, T>(
        &self,
        subresource: Option<&str>,
        name: &str,
        configuration: &(impl Serialize + ?Sized),
        field_manager: &str,
    ) -> PatchRequest<T>;

    /// A request that opens a stream: `.query("follow", "true").stream()`.
    fn connect(&self, method: Method, subresource: &str, name: &str) -> RawRequest;
}

impl<K: ApiObject, S: ObjectScope> ResourceClient<K, S> {
    fn request_to(&self, method: Method, subresource: Option<&str>, name: &str) -> RawRequest {
        let namespace = self.scope().namespace();
        let path = path::below(self.resource(), namespace, name, subresource);
        RawRequest::new(self.client().clone(), method, path).of(self.resource())
    }

    /// The name of what is requested, for errors.
    fn shown_kind(&self, subresource: Option<&str>) -> String {
        match subresource {
            Some(subresource) => format!("{}/{subresource}", self.resource().plural),
            None => self.resource().kind.to_string(),
        }
    }

    fn collection(&self) -> Result<String, crate::error::Error> {
        path::collection(self.resource(), self.scope().namespace())
    }
}

impl<K: ApiObject, S: ObjectScope> ObjectClient for ResourceClient<K, S> {
    fn get_as<T: DeserializeOwned>(&self, subresource: Option<&str>, name: &str) -> GetRequest<T> {
        GetRequest {
            request: self.request_to(Method::GET, subresource, name),
            kind: self.shown_kind(subresource),
            object: PhantomData,
        }
    }

    fn list_as<T: ApiObject>(&self, of_object: Option<(&str, &str)>) -> ListRequest<T> {
        let path = match of_object {
            Some((subresource, name)) => {
                let namespace = self.scope().namespace();
                path::below(self.resource(), namespace, name, Some(subresource))
            }
            None => self.collection(),
        };
        ListRequest {
            make: ListSource {
                client: self.client().clone(),
                path: path.map_err(|error| error.to_string()),
                kind: self.shown_kind(of_object.map(|(subresource, _)| subresource)),
                accept: None,
            },
            options: ListOptions::default(),
            keeps_undecodable: false,
            is_retried: true,
            object: PhantomData,
        }
    }

    fn create_as<B: Kind, T>(&self, of_object: Option<(&str, &str)>, body: &B) -> WriteRequest<T> {
        let request = match of_object {
            Some((subresource, name)) => self.request_to(Method::POST, Some(subresource), name),
            None => {
                let path = self.collection();
                RawRequest::new(self.client().clone(), Method::POST, path).of(self.resource())
            }
        };
        let kind = self.shown_kind(of_object.map(|(subresource, _)| subresource));
        WriteRequest::new(request, kind).with_body(encoding::object(&B::api_resource(), body))
    }

    fn update_as<B: Kind, T>(
        &self,
        subresource: Option<&str>,
        name: &str,
        body: &B,
    ) -> WriteRequest<T> {
        let request = self.request_to(Method::PUT, subresource, name);
        WriteRequest::new(request, self.shown_kind(subresource))
            .with_body(encoding::object(&B::api_resource(), body))
    }

    fn patch_as<T>(&self, subresource: Option<&str>, name: &str, patch: Patch) -> PatchRequest<T> {
        let request = self.request_to(Method::PATCH, subresource, name);
        PatchRequest::new(
            WriteRequest::new(request, self.shown_kind(subresource)),
            patch,
        )
    }

    fn apply_as<B: Kind, T>(
        &self,
        subresource: Option<&str>,
        name: &str,
        configuration: &(impl Serialize + ?Sized),
        field_manager: &str,
    ) -> PatchRequest<T> {
        let body = encoding::named_configuration(&B::api_resource(), name, configuration);
        self.patch_as(subresource, name, Patch::apply_encoded(body))
            .field_manager(field_manager)
    }

    fn connect(&self, method: Method, subresource: &str, name: &str) -> RawRequest {
        self.request_to(method, Some(subresource), name)
    }
}

#[cfg(test)]
mod tests;
