//! One version of a kind: what it declares, its schema and its rules.

use std::fmt;
use std::sync::Arc;

use apiloom_meta::codec::{Finder, append_json};
use apiloom_meta::kind::{InMemoryConversion, ResourceDef};
use apiloom_meta::schema::Schema;

use super::json::METADATA;
use super::version_schema::VersionSchema;
use crate::registry::rules::handler::ErasedHandler;
use crate::registry::rules::strategy::ErasedStrategy;

/// A kind of one version.
pub(crate) struct KindVersion {
    /// Its position among the versions of the kind.
    pub(crate) index: VersionIndex,
    /// What it declares.
    pub(crate) def: Arc<ResourceDef>,
    /// Its `apiVersion`.
    pub(crate) api_version: String,
    /// What the JSON of an object begins with, up to the value of its metadata.
    pub(crate) head: Vec<u8>,
    /// Makes its schema.
    pub(crate) version_schema: Arc<VersionSchema>,
    /// Finds the fields that it can be selected by, in the order of their declaration.
    pub(crate) selectable: Finder,
    /// Its own rules.
    pub(crate) strategy: Option<Box<dyn ErasedStrategy>>,
    /// What answers creates, if there is no store.
    pub(crate) handler: Option<Box<dyn ErasedHandler>>,
}

impl KindVersion {
    /// A version that declares this.
    pub(crate) fn new(
        index: VersionIndex,
        def: ResourceDef,
        strategy: Option<Box<dyn ErasedStrategy>>,
        handler: Option<Box<dyn ErasedHandler>>,
    ) -> Self {
        let def = Arc::new(def);
        let mut head = Vec::new();
        let api_version = def.api_version();
        for (name, value) in [
            ("{\"kind\":", &*def.kind),
            (",\"apiVersion\":", &api_version),
        ] {
            head.extend_from_slice(name.as_bytes());
            append_json(&value, &mut head);
        }
        head.push(b',');
        head.extend_from_slice(METADATA);
        Self {
            index,
            api_version,
            head,
            version_schema: Arc::new(VersionSchema::new(Arc::clone(&def))),
            selectable: Finder::new(def.selectable.iter().cloned()),
            strategy,
            handler,
            def,
        }
    }

    /// What converts its objects to the hub and back in memory; `None` for the hub, and for other ways.
    pub(crate) fn functions(&self) -> Option<&InMemoryConversion> {
        self.def.conversion.as_ref()?.in_memory()
    }

    /// Its schema, made when it is first needed.
    pub(crate) fn schema(&self) -> &Arc<Schema> {
        self.version_schema.get()
    }
}

impl fmt::Debug for KindVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindVersion")
            .field("api_version", &self.api_version)
            .field("kind", &self.def.kind)
            .finish()
    }
}

/// A position in [`Kind::versions`].
pub(crate) type VersionIndex = usize;
