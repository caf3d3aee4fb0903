//! get: one object.

use apiloom_meta::ApiError;

use super::cached::Freshness;
use super::selection::Selection;
use super::stored::StoredReads;
use crate::error;
use crate::objects::document::Document;
use crate::options::{GetOptions, RequestContext};

impl StoredReads {
    /// Reads one object.
    ///
    /// # Errors
    /// NotFound; Timeout for a future resourceVersion.
    pub(crate) async fn get(
        &self,
        _ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
        options: &GetOptions,
    ) -> Result<Document, ApiError> {
        let at_least = error::version_option(&options.resource_version)?;
        let key = self.resource.kind.keys.key(namespace, name)?;
        if let Some(cache) = &self.resource.cache {
            let wanted = Freshness::by(&options.resource_version, at_least);
            if let Some(state) = self.state(cache, wanted, "get").await? {
                let item = state
                    .get(&key)
                    .ok_or_else(|| self.resource.not_found(name))?;
                let everything = Selection::everything();
                let found = if self.is_awaited() {
                    self.select_in(item, None, &everything).await?
                } else {
                    self.select(item, &everything)?
                };
                return found.ok_or_else(|| self.resource.not_found(name));
            }
        }
        let (entry, revision) = self
            .resource
            .kind
            .store
            .get(&key)
            .await
            .map_err(|e| self.resource.kind.error(e, "get"))?;
        // Gets read the store itself; waiting does not produce a future revision.
        if revision.0 < at_least {
            return Err(error::too_large(at_least, revision));
        }
        let entry = entry.ok_or_else(|| self.resource.not_found(name))?;
        self.resource
            .kind
            .entry_in(&entry, self.resource.version)
            .await
            .map(Document::from)
    }
}
