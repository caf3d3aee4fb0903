//! The end of a write: bytes to the store, and the answer and the warnings for what was written.

use std::sync::Arc;

use apiloom_meta::{ApiError, Object};
use apiloom_storage::{Revision, StorageError};

use super::Writes;
use super::written::Written;
use crate::registry::objects::prepared::Prepared;
use crate::registry::options::RequestContext;

impl Writes {
    /// Writes an object where nothing is, or over the `expected` revision, and lets the watch cache have it too.
    pub(crate) async fn store(
        &self,
        key: &str,
        prepared: &Arc<Prepared>,
        expected: Option<Revision>,
    ) -> Result<Revision, StorageError> {
        let kind = &self.resource.kind;
        if self.resource.cache.is_some() {
            kind.handed.put(key, Arc::clone(prepared));
        }
        let bytes = prepared.stored.clone();
        let written = match expected {
            None => kind.store_create(key, bytes).await,
            Some(expected) => kind.store_update(key, expected, bytes).await,
        };
        if written.is_err() {
            kind.handed.forget(key, prepared);
        }
        written
    }

    /// The object as a client sees it after a write: what a read of the written bytes would give.
    pub(crate) async fn written(
        &self,
        key: &str,
        prepared: &Prepared,
        revision: Revision,
        mut object: Object,
    ) -> Result<Written, ApiError> {
        if self.resource.version == self.resource.kind.storage_version {
            object.set_meta_str("resourceVersion", &revision.to_string());
            let json = Some(prepared.served(revision));
            return Ok(Written { object, json });
        }
        let (kind, version) = (&self.resource.kind, self.resource.version);
        let object = kind
            .read_in(key, &prepared.stored, revision, version)
            .await?;
        Ok(object.into())
    }

    /// Shows the warnings of the kind's rules about a written object.
    pub(crate) fn warn(&self, ctx: &RequestContext, object: &Object) {
        let Some((version, strategy)) = self.resource.kind.strategy(self.resource.version) else {
            return;
        };
        let texts = if version == self.resource.version {
            strategy.warnings(ctx, object)
        } else {
            // It was converted there to be judged.
            match self
                .resource
                .kind
                .convert(object.clone(), self.resource.version, version)
            {
                Ok(converted) => strategy.warnings(ctx, &converted),
                Err(_) => return,
            }
        };
        texts.into_iter().for_each(|text| ctx.warn(text));
    }
}
