//! Create, update, patch and delete, from the decoding of a body to the write in the store.
//!
//! A write is a value: a [`WriteRequest`](request::WriteRequest) and a [`Change`](change::Change) with a file of its own (`replace`, `patch`, `apply`, `edit`,
//! `scale`). `write` takes it through five parts, none of which knows another: [`Versions`] has the object in the versions that the
//! write needs, [`Owners`] records who owns its fields, [`Rules`] defaults, admits and prepares it, [`Judge`] validates it, and [`Commit`]
//! stores it. In order: the present object, the change, defaults, owners, the mutating phase of admission, the hooks of the strategy, the
//! other versions, validation, the validating phase of admission, the stored version, the store. The objects of a kind with code in place
//! of a store go the same way to the code (`by_code`).

pub(super) mod apply;
pub(super) mod body;
mod by_code;
mod change;
mod commit;
mod create;
mod decode;
mod delete;
pub(super) mod edit;
mod fields;
mod graceful;
mod judge;
mod managed;
pub(super) mod migrate;
mod owners;
mod patch;
pub(super) mod preconditions;
mod replace;
pub(super) mod request;
pub(super) mod results;
mod rules;
mod scale;
pub(super) mod settings;
mod stages;
pub(super) mod stamp;
mod versions;
mod write;

use std::sync::Arc;

use apiloom_meta::codec::Format;
use apiloom_meta::{ApiError, Object, Time};

use self::commit::Commit;
use self::decode::Decoder;
use self::judge::Judge;
use self::owners::Owners;
use self::rules::Rules;
use self::settings::WriteSettings;
use self::versions::Versions;
use crate::objects::versioned_resource::VersionedResource;
use crate::options::{FieldValidation, RequestContext};

/// Create, update, patch and delete of one resource in one version. Arguments and results are objects of this version.
#[derive(Debug)]
pub struct Writes {
    resource: Arc<VersionedResource>,
    settings: Arc<WriteSettings>,
    /// Decodes and changes the Scales of a resource that has them.
    scale: Option<Arc<Writes>>,
    decoder: Decoder,
    versions: Versions,
    owners: Owners,
    rules: Rules,
    judge: Judge,
    pub(super) commit: Commit,
}

impl Writes {
    pub(super) fn new(
        resource: Arc<VersionedResource>,
        settings: Arc<WriteSettings>,
        scale: Option<Arc<Self>>,
    ) -> Self {
        Self::with(resource, settings, scale, None)
    }

    /// Decodes and changes the bodies of a subresource of `parent`.
    pub(super) fn of_bodies(
        resource: Arc<VersionedResource>,
        parent: Arc<VersionedResource>,
        settings: Arc<WriteSettings>,
    ) -> Self {
        Self::with(resource, settings, None, Some(parent))
    }

    fn with(
        resource: Arc<VersionedResource>,
        settings: Arc<WriteSettings>,
        scale: Option<Arc<Self>>,
        parent: Option<Arc<VersionedResource>>,
    ) -> Self {
        Self {
            decoder: Decoder::new(Arc::clone(&resource), Arc::clone(&settings)),
            versions: Versions::new(Arc::clone(&resource)),
            owners: Owners::new(Arc::clone(&resource), Arc::clone(&settings)),
            rules: Rules::new(Arc::clone(&resource), parent, Arc::clone(&settings)),
            judge: Judge::new(Arc::clone(&resource)),
            commit: Commit::new(Arc::clone(&resource), Arc::clone(&settings)),
            resource,
            settings,
            scale,
        }
    }

    /// Decodes a body, defaults and checks its apiVersion and kind, and handles unknown and duplicate fields as
    /// `validation` says.
    ///
    /// # Errors
    /// BadRequest with kube-apiserver's message; RequestEntityTooLarge if YAML aliases expand the body beyond
    /// [`MAX_EXPANDED_BYTES`](apiloom_meta::codec::MAX_EXPANDED_BYTES).
    pub fn decode(
        &self,
        ctx: &RequestContext,
        body: &[u8],
        format: Format,
        validation: FieldValidation,
    ) -> Result<Object, ApiError> {
        self.decoder.decode(ctx, body, format, validation)
    }

    /// As [`decode`](Self::decode), for a document of this kind in memory.
    ///
    /// # Errors
    /// BadRequest with kube-apiserver's message.
    pub fn decode_tree(
        &self,
        ctx: &RequestContext,
        document: serde_json::Value,
        validation: FieldValidation,
    ) -> Result<Object, ApiError> {
        self.decoder.decode_tree(ctx, document, validation)
    }

    /// The time of the server's clock.
    pub fn now(&self) -> Time {
        self.settings.clock.now()
    }
}
