//! The schema of a stored CustomResourceDefinition, as its JSON.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use super::super::{Metadata, Schema, SchemaErrors};
use super::publish;

/// The JSON of an `openAPIV3Schema` that a definition in the store has, which was checked when the definition was written. Its
/// tree, which needs as much memory again, is made when it is first needed.
///
/// ```
/// use apiloom_schema::StoredSchema;
/// use bytes::Bytes;
/// let stored = StoredSchema::new(Bytes::from(r#"{"type": "object", "properties": {"spec": {"type": "object"}}}"#));
/// assert!(stored.schema()?.validate(&serde_json::json!({"spec": 1})).len() == 1);
/// # Ok::<(), apiloom_schema::SchemaErrors>(())
/// ```
pub struct StoredSchema(Mutex<Bytes>);

impl StoredSchema {
    /// A schema with this JSON.
    pub fn new(json: Bytes) -> Self {
        Self(Mutex::new(json))
    }

    /// The JSON.
    pub fn json(&self) -> Bytes {
        let json = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        json.clone()
    }

    /// Replaces the JSON by the same JSON elsewhere. The bytes are a part of those of a whole definition, which are kept with them:
    /// those of an earlier state of the definition would be kept for this part alone.
    pub fn share(&self, json: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = json;
    }

    /// Makes the schema.
    ///
    /// # Errors
    /// As [`Schema::of_custom_resource`].
    pub fn schema(&self) -> Result<Schema, SchemaErrors> {
        Schema::of_custom_resource_json(self.json())
    }

    /// As [`Schema::to_openapi`], without the tree of the schema.
    pub fn to_openapi(&self, metadata: &Metadata<'_>) -> Value {
        publish::v3(self.document(), metadata)
    }

    /// As [`Schema::to_openapi_v2`], without the tree of the schema.
    pub fn to_openapi_v2(&self, metadata: &Metadata<'_>) -> Value {
        publish::v2(self.document(), metadata)
    }

    fn document(&self) -> Value {
        // It was parsed before.
        serde_json::from_slice(&self.json()).unwrap_or_default()
    }
}

/// Without the JSON, which is long.
impl fmt::Debug for StoredSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSchema")
            .field("bytes", &self.json().len())
            .finish()
    }
}
