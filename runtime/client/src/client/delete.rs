//! Deleting one object, or all that are selected.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;

use apiloom_meta::Status;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::Serialize;

use super::encoding;
use super::failure;
use super::list::{ObjectList, decode_list};
use super::object::ApiObject;
use super::options::ListOptions;
use super::request::{RawRequest, decode};
use crate::error::{DecodeError, Error};

/// What happens to the objects that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Propagation {
    /// They are deleted later.
    Background,
    /// They are deleted first; the object waits for them.
    Foreground,
    /// They stay, without their owner.
    Orphan,
}

/// What a deletion did.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion<K> {
    /// The server says that it succeeded: as a rule, the object is gone.
    Done(Box<Status>),
    /// The object, which may be gone, or wait for its finalizers or its grace period.
    Object(Box<K>),
    /// The deletion succeeded, but the server responded with an object that is none of this type.
    Undecodable(Box<DecodeError>),
}

/// `DeleteOptions` of `meta/v1`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_period_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    propagation_policy: Option<Propagation>,
    #[serde(skip_serializing_if = "Preconditions::is_empty")]
    preconditions: Preconditions,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dry_run: Vec<&'static str>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions {
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
}

impl Preconditions {
    fn is_empty(&self) -> bool {
        self.uid.is_none() && self.resource_version.is_none()
    }
}

impl DeleteOptions {
    /// The body; empty if all options are the defaults.
    fn body(&self) -> Result<Bytes, Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Typed<'a> {
            api_version: &'static str,
            kind: &'static str,
            #[serde(flatten)]
            options: &'a DeleteOptions,
        }
        let typed = Typed {
            api_version: "v1",
            kind: "DeleteOptions",
            options: self,
        };
        encoding::json(&typed).map(Bytes::from)
    }
}

/// The deletion of an object; awaiting it sends it.
#[derive(Debug)]
#[must_use = "a request is sent when it is awaited"]
pub struct DeleteRequest<K> {
    pub(super) request: RawRequest,
    pub(super) kind: String,
    pub(super) options: DeleteOptions,
    pub(super) object: PhantomData<fn() -> K>,
}

/// The deletion of all selected objects; awaiting it sends it and gives the objects as they were before.
#[derive(Debug)]
#[must_use = "a request is sent when it is awaited"]
pub struct DeleteCollectionRequest<K> {
    pub(super) request: RawRequest,
    pub(super) kind: String,
    pub(super) list: ListOptions,
    pub(super) options: DeleteOptions,
    pub(super) object: PhantomData<fn() -> K>,
}

macro_rules! shared_options {
    ($request:ident) => {
        impl<K> $request<K> {
            /// The server does everything except for deleting.
            pub fn dry_run(mut self) -> Self {
                self.options.dry_run = vec!["All"];
                self
            }

            /// How long the object may take to end, of kinds with graceful deletion. Default: the kind's own.
            pub fn grace_period_seconds(mut self, seconds: u32) -> Self {
                self.options.grace_period_seconds = Some(seconds);
                self
            }

            /// What happens to the objects that the object owns. Default: the kind's own, mostly in the background.
            pub fn propagation(mut self, propagation: Propagation) -> Self {
                self.options.propagation_policy = Some(propagation);
                self
            }
        }
    };
}

shared_options!(DeleteRequest);
shared_options!(DeleteCollectionRequest);

impl<K> DeleteRequest<K> {
    /// Deletes only the object with this uid, not a later one of the same name: else a conflict.
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.options.preconditions.uid = Some(uid.into());
        self
    }

    /// Deletes only the object in this state: else a conflict.
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.options.preconditions.resource_version = Some(version.into());
        self
    }
}

impl<K> DeleteCollectionRequest<K> {
    /// Selects by labels: a text or a `LabelQuery`.
    pub fn labels(mut self, selector: impl fmt::Display) -> Self {
        self.list.label_selector = selector.to_string();
        self
    }

    /// Selects by fields: a text or a `FieldSelector`.
    pub fn fields(mut self, selector: impl fmt::Display) -> Self {
        self.list.field_selector = selector.to_string();
        self
    }
}

fn with_body(request: RawRequest, options: &DeleteOptions) -> RawRequest {
    match options.body() {
        Ok(body) => request.body("application/json", body),
        Err(error) => request.fail(error),
    }
}

impl<K: ApiObject> IntoFuture for DeleteRequest<K> {
    type Output = Result<Deletion<K>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let request = with_body(self.request, &self.options);
            let path = request.shown_path();
            let bytes = request.bytes().await?;
            match failure::parse(&bytes) {
                Some(status) if status.status == "Failure" => Err(Error::Api(Box::new(status))),
                Some(status) => Ok(Deletion::Done(Box::new(status))),
                None => match decode(&bytes, &path, &self.kind) {
                    Ok(object) => Ok(Deletion::Object(Box::new(object))),
                    // It is done all the same: an object of another form must not make it an error.
                    Err(Error::Decode(error)) => Ok(Deletion::Undecodable(error)),
                    Err(error) => Err(error),
                },
            }
        })
    }
}

impl<K: ApiObject> IntoFuture for DeleteCollectionRequest<K> {
    type Output = Result<ObjectList<K>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let request = self.list.add_to(with_body(self.request, &self.options));
            let most = request.client.settings().max_list_bytes;
            let request = request.max_list_bytes(most);
            let path = request.shown_path();
            let bytes = request.bytes().await?;
            match failure::parse(&bytes) {
                Some(status) if status.status == "Failure" => Err(Error::Api(Box::new(status))),
                // Some servers say no more than that it is done.
                Some(_) => Ok(ObjectList {
                    metadata: apiloom_meta::ListMeta::default(),
                    items: Vec::new(),
                    undecodable: Vec::new(),
                }),
                // The deletion is done: an object of another form must not make it an error.
                None => decode_list(&bytes, &path, &self.kind, true),
            }
        })
    }
}
