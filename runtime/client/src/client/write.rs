//! Creating and replacing objects: the options of writes.

use std::future::IntoFuture;
use std::marker::PhantomData;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::options::FieldValidation;
use super::request::{RawRequest, decode};
use crate::error::Error;

/// A create or an update; awaiting it sends it and gives the object as it was stored.
#[derive(Debug)]
#[must_use = "a request is sent when it is awaited"]
pub struct WriteRequest<K> {
    pub(super) request: RawRequest,
    kind: String,
    object: PhantomData<fn() -> K>,
}

impl<K> WriteRequest<K> {
    pub(super) fn new(request: RawRequest, kind: String) -> Self {
        Self {
            request,
            kind,
            object: PhantomData,
        }
    }

    pub(super) fn with_body(mut self, body: Result<Bytes, Error>) -> Self {
        self.request = match body {
            Ok(json) => self.request.body("application/json", json),
            Err(error) => self.request.fail(error),
        };
        self
    }

    /// The server does everything except for storing.
    pub fn dry_run(mut self) -> Self {
        self.request = self.request.query("dryRun", "All");
        self
    }

    /// The owner of the fields that are written, at most 128 bytes. Default: the part of the user agent before the slash.
    pub fn field_manager(mut self, name: &str) -> Self {
        self.request = self.request.query("fieldManager", name);
        self
    }

    /// What the server does with fields that it does not know. Default: it ignores them and warns.
    pub fn field_validation(mut self, validation: FieldValidation) -> Self {
        let validation = validation.as_str();
        self.request = self.request.query("fieldValidation", validation);
        self
    }
}

impl<K: DeserializeOwned + Send + 'static> IntoFuture for WriteRequest<K> {
    type Output = Result<K, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let path = self.request.shown_path();
            let bytes = self.request.bytes().await?;
            decode(&bytes, &path, &self.kind)
        })
    }
}
