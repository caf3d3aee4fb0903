//! Sources of the schema of a kind.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "schema")]
use crate::schema::StoredSchema;
use crate::schema::{Schema, SchemaErrors};

/// Makes the schema of a type.
pub type SchemaFn = fn() -> Result<Schema, SchemaErrors>;

/// Source of the schema of a version.
///
/// ```
/// use std::sync::Arc;
/// use apiloom_meta::kind::SchemaSource;
/// use apiloom_meta::schema::Schema;
///
/// let document = serde_json::json!({"type": "object", "properties": {"size": {"type": "integer"}}});
/// let source = SchemaSource::Document(Arc::new(Schema::of_resource(&document)?));
/// assert!(source.schema()?.has_path(&apiloom_meta::JsonPath::new(["metadata", "name"])));
/// # Ok::<(), apiloom_meta::schema::SchemaErrors>(())
/// ```
#[derive(Clone)]
pub enum SchemaSource {
    /// A Rust type. Its schema is made, and checked against the definition, when the kind is registered.
    Type(SchemaFn),
    /// A Rust type that `apiloom generate` has checked. Its schema is made when it is first needed.
    LazyType(SchemaFn),
    /// A document, read at run time. It is checked against the definition when the kind is registered.
    Document(Arc<Schema>),
    /// The JSON of a custom resource's schema in a stored definition. It was checked when the definition was written, and is made
    /// when it is first needed.
    #[cfg(feature = "schema")]
    Stored(Arc<StoredSchema>),
}

impl SchemaSource {
    /// The schema; that of a type or of a stored definition is made by every call.
    ///
    /// # Errors
    /// The fields without a structural schema.
    pub fn schema(&self) -> Result<Arc<Schema>, SchemaErrors> {
        match self {
            Self::Type(make) | Self::LazyType(make) => make().map(Arc::new),
            Self::Document(schema) => Ok(Arc::clone(schema)),
            #[cfg(feature = "schema")]
            Self::Stored(stored) => stored.schema().map(Arc::new),
        }
    }

    /// Whether the schema is made when it is first needed, not when the kind is registered.
    pub fn is_lazy(&self) -> bool {
        match self {
            Self::LazyType(_) => true,
            #[cfg(feature = "schema")]
            Self::Stored(_) => true,
            Self::Type(_) | Self::Document(_) => false,
        }
    }

    /// The same source; a type becomes a lazy one.
    #[must_use]
    pub fn lazy(self) -> Self {
        match self {
            Self::Type(make) => Self::LazyType(make),
            other => other,
        }
    }
}

impl fmt::Debug for SchemaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Type(_) => "Type",
            Self::LazyType(_) => "LazyType",
            Self::Document(_) => "Document",
            #[cfg(feature = "schema")]
            Self::Stored(_) => "Stored",
        })
    }
}
