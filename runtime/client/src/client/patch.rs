//! Patches, and server-side apply.

use std::future::IntoFuture;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::encoding;
use super::options::FieldValidation;
use super::write::WriteRequest;
use crate::error::Error;

/// A patch, in one of the forms that servers know.
#[derive(Debug)]
pub struct Patch {
    content_type: &'static str,
    body: Result<Bytes, Error>,
}

impl Patch {
    /// A JSON patch (RFC 6902): a list of operations. An operation `test` makes it fail if the object has changed.
    pub fn json<P: Serialize + ?Sized>(operations: &P) -> Self {
        Self::of("application/json-patch+json", operations)
    }

    /// A merge patch (RFC 7386): the fields to set, and `null` for those to remove. Lists are replaced.
    pub fn merge<P: Serialize + ?Sized>(fields: &P) -> Self {
        Self::of("application/merge-patch+json", fields)
    }

    /// A strategic merge patch, which merges lists by their keys. Custom resources, and most kinds of apiloom, refuse it.
    pub fn strategic<P: Serialize + ?Sized>(fields: &P) -> Self {
        Self::of("application/strategic-merge-patch+json", fields)
    }

    /// A complete configuration for server-side apply, with `apiVersion` and `kind`; needs a field manager.
    pub fn apply<P: Serialize + ?Sized>(configuration: &P) -> Self {
        Self::of(APPLY, configuration)
    }

    pub(super) fn apply_encoded(body: Result<Bytes, Error>) -> Self {
        let content_type = APPLY;
        Self { content_type, body }
    }

    fn of<P: Serialize + ?Sized>(content_type: &'static str, value: &P) -> Self {
        let body = encoding::json(value).map(Bytes::from);
        Self { content_type, body }
    }
}

/// The media type of server-side apply; JSON is YAML.
const APPLY: &str = "application/apply-patch+yaml";

/// A patch of an object; awaiting it sends it and gives the object as it was stored.
#[derive(Debug)]
#[must_use = "a request is sent when it is awaited"]
pub struct PatchRequest<K>(WriteRequest<K>);

impl<K> PatchRequest<K> {
    pub(super) fn new(mut write: WriteRequest<K>, patch: Patch) -> Self {
        write.request = match patch.body {
            Ok(body) => write.request.body(patch.content_type, body),
            Err(error) => write.request.fail(error),
        };
        Self(write)
    }

    /// The server does everything except for storing.
    pub fn dry_run(self) -> Self {
        Self(self.0.dry_run())
    }

    /// The owner of the fields that are written, at most 128 bytes. Required for an apply.
    pub fn field_manager(self, name: &str) -> Self {
        Self(self.0.field_manager(name))
    }

    /// What the server does with fields that it does not know. Default: it ignores them and warns.
    pub fn field_validation(self, validation: FieldValidation) -> Self {
        Self(self.0.field_validation(validation))
    }

    /// Of an apply: takes fields that other managers have, in place of a conflict.
    pub fn force(mut self) -> Self {
        self.0.request = self.0.request.query("force", "true");
        self
    }
}

impl<K: DeserializeOwned + Send + 'static> IntoFuture for PatchRequest<K> {
    type Output = Result<K, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.0.into_future()
    }
}
