//! Create, update, patch and delete, from the decoding of a body to the write in the store.

pub(super) mod apply;
pub(super) mod attempt;
pub(super) mod body;
pub(super) mod create;
pub(super) mod decode;
pub(super) mod delete;
pub(super) mod draft;
pub(super) mod field_manager;
mod graceful;
pub(super) mod managed;
pub(super) mod migrate;
pub(super) mod patch;
pub(super) mod results;
pub(super) mod scale;
pub(super) mod stamp;
pub(super) mod store;
pub(super) mod target;
pub(super) mod update;
pub(super) mod validate;

use std::sync::Arc;

use apiloom_meta::{Clock, ResourceDef, Time};
use arc_swap::ArcSwap;

use crate::registry::objects::versioned_resource::VersionedResource;
use crate::registry::rules::admission::Chain;

/// Create, update, patch and delete of one resource in one version. Arguments and results are objects of this version.
#[derive(Debug)]
pub struct Writes {
    resource: Arc<VersionedResource>,
    settings: Arc<WriteSettings>,
    /// Of the bodies of a subresource: the resource to which it belongs.
    parent: Option<Arc<VersionedResource>>,
    /// Decodes and changes the Scales of a resource that has them.
    scale: Option<Arc<Writes>>,
}

impl Writes {
    pub(super) fn new(
        resource: Arc<VersionedResource>,
        settings: Arc<WriteSettings>,
        scale: Option<Arc<Self>>,
    ) -> Self {
        Self {
            resource,
            settings,
            parent: None,
            scale,
        }
    }

    /// Decodes and changes the bodies of a subresource of `parent`.
    pub(super) fn of_bodies(
        resource: Arc<VersionedResource>,
        parent: Arc<VersionedResource>,
        settings: Arc<WriteSettings>,
    ) -> Self {
        Self {
            resource,
            settings,
            parent: Some(parent),
            scale: None,
        }
    }
}

impl Writes {
    /// The time of the server's clock.
    pub(crate) fn now(&self) -> Time {
        self.settings.clock.now()
    }
}

/// Settings that the writes of all resources share.
pub(super) struct WriteSettings {
    /// The admission plugins.
    pub(super) chain: Chain,
    /// Makes the suffixes of generated names.
    pub(super) names: Box<dyn Fn() -> String + Send + Sync>,
    /// The time of writes.
    pub(super) clock: Clock,
    /// The size limit of an object in its stored form, in bytes.
    pub(super) max_object_bytes: usize,
    /// The definitions of all registered versions, for the errors about bodies of another kind.
    pub(super) registered: ArcSwap<Arc<[Arc<ResourceDef>]>>,
}

impl std::fmt::Debug for WriteSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteSettings")
            .field("chain", &self.chain)
            .finish_non_exhaustive()
    }
}
