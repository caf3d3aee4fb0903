//! The types that the code of a subresource can respond with: the kinds, and Status.

use serde::Serialize;

use super::{Resource, ResourceDef};
use crate::gvk::GroupVersionKind;
use crate::types::Status;

/// A response of a subresource: an object of any kind, or a [`Status`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a kind nor a `Status`, so a subresource cannot respond with it",
    note = "declare it with `#[apiloom::resource(.., simple)]`"
)]
pub trait SubresourceOutput: Serialize + Send + Sync + 'static {
    /// The kind, as discovery and OpenAPI name it.
    fn gvk() -> GroupVersionKind;
    /// The definition of the kind; `None` for a Status.
    fn body_definition() -> Option<ResourceDef>;
}

impl<K: Resource> SubresourceOutput for K {
    fn gvk() -> GroupVersionKind {
        GroupVersionKind::new(K::GROUP, K::VERSION, K::KIND)
    }
    fn body_definition() -> Option<ResourceDef> {
        Some(K::definition())
    }
}

impl SubresourceOutput for Status {
    fn gvk() -> GroupVersionKind {
        GroupVersionKind::new("", "v1", "Status")
    }
    fn body_definition() -> Option<ResourceDef> {
        None
    }
}
