//! Kinds from documents of clients: how they are served now, and access to their objects without a served version.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use apiloom_meta::GroupResource;
use apiloom_meta::kind::{ResourceDef, SchemaSource, SmolStr};
use apiloom_meta::schema::StoredSchema;

use super::change::CatalogChange;
use super::resources::Registry;
use super::snapshot::Catalog;
use crate::endpoint::Endpoint;

impl Catalog {
    /// Whether a resource is that of a Rust type.
    pub fn is_compiled(&self, resource: &GroupResource) -> bool {
        self.compiled().any(|def| def.group_resource() == *resource)
    }

    /// The definitions of all versions that are Rust types.
    pub fn compiled(&self) -> impl Iterator<Item = &ResourceDef> {
        let defs = self.defs.iter().map(|def| &**def);
        defs.filter(|def| def.dialect.is_of_program())
    }

    /// The state of the document from which a resource is served; `None` if it is not served from a document.
    pub fn document_state(&self, resource: &GroupResource) -> Option<&SmolStr> {
        let def = &self.kinds.get(resource)?.kind.versions.stored_version().def;
        Some(&def.custom.as_ref()?.state)
    }

    /// The schemas of a resource that is served from a stored definition, with the names of their versions.
    pub fn stored_schemas(
        &self,
        resource: &GroupResource,
    ) -> impl Iterator<Item = (&str, &Arc<StoredSchema>)> {
        let kinds = self.kinds.get(resource).into_iter();
        let versions = kinds.flat_map(|of| &of.kind.versions.all);
        versions.filter_map(|version| match &version.def.schema {
            SchemaSource::Stored(schema) => Some((version.def.version.as_str(), schema)),
            _ => None,
        })
    }

    /// The resources that are served from documents of clients.
    pub fn documents(&self) -> impl Iterator<Item = &GroupResource> {
        let kinds = self.kinds.iter();
        let kinds = kinds.filter(|(_, of)| {
            let custom = of.kind.versions.stored_version().def.custom.as_ref();
            custom.is_some_and(|custom| !custom.state.is_empty())
        });
        kinds.map(|(resource, _)| resource)
    }

    /// Whether no objects of a resource are created any more; `None` if there is no such resource.
    pub fn is_terminating(&self, resource: &GroupResource) -> Option<bool> {
        let of = self.kinds.get(resource)?;
        Some(of.kind.is_terminating.load(Ordering::Acquire))
    }

    /// An endpoint for the objects of a resource in its storage version, which need not be served.
    pub fn stored_endpoint(
        &self,
        registry: &Registry,
        resource: &GroupResource,
    ) -> Option<Endpoint> {
        let of = self.kinds.get(resource)?;
        let kind = Arc::clone(&of.kind);
        let version = kind.versions.stored;
        let shared = &registry.settings.shared;
        Some(Endpoint::new(kind, version, shared, of.cache.clone(), None))
    }
}

impl Registry {
    /// Refuses creates of objects of a resource from now on, and publishes that.
    ///
    /// # Errors
    /// As [`Registry::change`].
    pub async fn terminate(&self, resource: &GroupResource) -> Result<(), Vec<String>> {
        let catalog = self.catalog();
        let Some(of) = catalog.kinds.get(resource) else {
            return Ok(());
        };
        if of.kind.is_terminating.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        // The documents of discovery are made for each catalog.
        self.change(CatalogChange::new()).await
    }
}
