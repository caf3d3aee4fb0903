//! What documents of OpenAPI and definitions are made of.

use std::sync::Arc;

use apiloom_meta::ResourceDef;
use apiloom_meta::schema::{CrdSchema, Metadata};
use apiloom_registry::VersionSchema;
use serde_json::Value;

use super::names;

/// A schema as OpenAPI v3, with the given spelling of metadata.
pub(crate) type SchemaAs = dyn Fn(&Metadata<'_>) -> Value + Send + Sync;

/// A schema for a CustomResourceDefinition.
pub(crate) type SchemaInCrd = dyn Fn() -> CrdSchema + Send + Sync;

/// A kind's definition with functions for its schema.
pub(crate) struct KindSource {
    pub(crate) def: Arc<ResourceDef>,
    /// Whether this is a kind of the server itself, such as Namespace.
    pub(crate) is_own: bool,
    pub(crate) schema: Box<SchemaAs>,
    /// The schema of a custom resource in OpenAPI v2.
    pub(crate) in_v2: Box<SchemaAs>,
    pub(crate) in_crd: Box<SchemaInCrd>,
    /// Text of the deprecation warning, if the version is deprecated in the release.
    pub(crate) deprecation_warning: Option<String>,
}

impl KindSource {
    pub(crate) fn new(
        def: &Arc<ResourceDef>,
        schema: &Arc<VersionSchema>,
        warning: Option<&str>,
    ) -> Self {
        let [schema, in_v2, in_crd] = [(); 3].map(|()| Arc::clone(schema));
        Self {
            def: Arc::clone(def),
            is_own: false,
            schema: Box::new(move |metadata| schema.to_openapi(metadata)),
            in_v2: Box::new(move |metadata| in_v2.to_openapi_v2(metadata)),
            in_crd: Box::new(move || in_crd.get().to_crd()),
            deprecation_warning: warning.map(str::to_owned),
        }
    }

    /// The schema in OpenAPI v3.
    pub(super) fn schema(&self) -> Value {
        (self.schema)(&Metadata::Ref(names::OBJECT_META))
    }
}
