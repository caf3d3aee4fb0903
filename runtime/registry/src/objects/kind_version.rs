//! One version of a kind: its definition, its schema and its hooks.

use std::fmt;
use std::sync::Arc;

use apiloom_meta::codec::Encoder;
use apiloom_meta::kind::{InMemoryConversion, ResourceDef};
use apiloom_meta::schema::Schema;
use apiloom_meta::{GroupKind, GroupResource};

use super::code::KindCode;
use super::field_finder::FieldFinder;
use super::hooks::ErasedStrategy;
use super::json::METADATA;
use super::version_schema::VersionSchema;

/// One version of a kind.
pub(crate) struct KindVersion {
    /// Its index in the versions of the kind.
    pub(crate) index: VersionIndex,
    /// Definition of the version.
    pub(crate) def: Arc<ResourceDef>,
    /// Group and resource of the version; its group may be another one than that of the hub.
    pub(crate) resource: GroupResource,
    /// Group and kind of the version.
    pub(crate) group_kind: GroupKind,
    /// `apiVersion` of its objects: `GROUP/VERSION`.
    pub(crate) api_version: String,
    /// Beginning of the JSON of every object, up to the value of `metadata`.
    pub(crate) head: Vec<u8>,
    /// Its schema, made when it is first needed.
    pub(crate) version_schema: Arc<VersionSchema>,
    /// Finds the values of the selectable fields, in the order of their declaration.
    pub(crate) selectable: FieldFinder,
    /// Hooks of this version.
    pub(crate) strategy: Option<Box<dyn ErasedStrategy>>,
    /// Its code, of a kind without a store.
    pub(crate) code: KindCode,
}

impl KindVersion {
    /// A version with this definition.
    pub(crate) fn new(
        index: VersionIndex,
        def: Arc<ResourceDef>,
        strategy: Option<Box<dyn ErasedStrategy>>,
        code: KindCode,
    ) -> Self {
        let mut head = Vec::new();
        let api_version = def.api_version();
        let names = if def.dialect.sorts_fields {
            [
                ("{\"apiVersion\":", &*api_version),
                (",\"kind\":", &*def.kind),
            ]
        } else {
            [
                ("{\"kind\":", &*def.kind),
                (",\"apiVersion\":", &*api_version),
            ]
        };
        for (name, value) in names {
            head.extend_from_slice(name.as_bytes());
            Encoder::append_json(&value, &mut head);
        }
        head.push(b',');
        head.extend_from_slice(METADATA);
        head.shrink_to_fit();
        Self {
            index,
            api_version,
            head,
            version_schema: Arc::new(VersionSchema::new(Arc::clone(&def))),
            resource: def.group_resource(),
            group_kind: def.group_kind(),
            selectable: FieldFinder::new(&def.selectable),
            strategy,
            code,
            def,
        }
    }

    /// Functions that convert its objects to the hub and back in memory; `None` for the hub itself, and for kinds with
    /// another conversion.
    pub(crate) fn functions(&self) -> Option<&InMemoryConversion> {
        self.def.conversion.as_ref()?.in_memory()
    }

    /// The schema, made when it is first needed.
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

/// The index of a version in the versions of its kind.
pub(crate) type VersionIndex = usize;
