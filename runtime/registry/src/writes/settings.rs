//! What the writes of all resources share.

use std::sync::Arc;

use apiloom_meta::{Clock, ResourceDef};
use arc_swap::ArcSwap;

use crate::rules::admission::Chain;

/// Settings that the writes of all resources share.
pub(crate) struct WriteSettings {
    /// The admission plugins.
    pub(crate) chain: Chain,
    /// Makes the suffixes of generated names.
    pub(crate) names: Box<dyn Fn() -> String + Send + Sync>,
    /// The time of writes.
    pub(crate) clock: Clock,
    /// The size limit of an object in its stored form, in bytes.
    pub(crate) max_object_bytes: usize,
    /// The definitions of all registered versions, for the errors about bodies of another kind.
    pub(crate) registered: ArcSwap<Arc<[Arc<ResourceDef>]>>,
}

impl std::fmt::Debug for WriteSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteSettings")
            .field("chain", &self.chain)
            .finish_non_exhaustive()
    }
}
