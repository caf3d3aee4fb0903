//! Sources of the schema of a kind.

use std::fmt;
use std::sync::Arc;

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
}

impl SchemaSource {
    /// The schema; that of a type is made by every call.
    ///
    /// # Errors
    /// The fields without a structural schema.
    pub fn schema(&self) -> Result<Arc<Schema>, SchemaErrors> {
        match self {
            Self::Type(make) | Self::LazyType(make) => make().map(Arc::new),
            Self::Document(schema) => Ok(Arc::clone(schema)),
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
        })
    }
}
