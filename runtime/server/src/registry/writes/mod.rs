//! Create, update, patch and delete: from a body to a revision in the store.

pub(super) mod attempt;
pub(super) mod create;
pub(super) mod decode;
pub(super) mod delete;
pub(super) mod draft;
pub(super) mod patch;
pub(super) mod stamp;
pub(super) mod store;
pub(super) mod target;
pub(super) mod update;
pub(super) mod validate;
pub(super) mod written;

use std::sync::Arc;

use apiloom_meta::GroupVersionKind;
use arc_swap::ArcSwap;

use crate::registry::objects::versioned_resource::VersionedResource;
use crate::registry::rules::admission::Chain;

/// Create, update, patch and delete of one resource in one version. Objects come in and go out in this version.
#[derive(Debug)]
pub struct Writes {
    resource: Arc<VersionedResource>,
    settings: Arc<WriteSettings>,
}

impl Writes {
    pub(super) fn new(resource: Arc<VersionedResource>, settings: Arc<WriteSettings>) -> Self {
        Self { resource, settings }
    }
}

/// What the writes of every resource of a registry use.
pub(super) struct WriteSettings {
    /// The admission plugins.
    pub(super) chain: Chain,
    /// The source of generated name suffixes.
    pub(super) names: Box<dyn Fn() -> String + Send + Sync>,
    /// The most bytes of an object as it is stored.
    pub(super) max_object_bytes: usize,
    /// Every registered kind in every version, for the texts about bodies of another kind.
    pub(super) registered: ArcSwap<Vec<GroupVersionKind>>,
}

impl std::fmt::Debug for WriteSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteSettings")
            .field("chain", &self.chain)
            .finish_non_exhaustive()
    }
}
