//! How objects become those of another version of their kind: in memory, by a new `apiVersion` alone, or by a converter
//! that is awaited.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;

use super::SmolStr;
use crate::gvk::GroupVersion;
use crate::schema::Schema;

/// How objects of a version become those of the hub, and back. All versions of a kind convert by the same method.
#[derive(Clone)]
pub struct Conversion {
    /// The hub's version, in the same group.
    pub hub_version: SmolStr,
    /// The hub's kind name; the same kind in another version.
    pub hub_kind: SmolStr,
    /// The way.
    pub method: ConversionMethod,
}

/// A way to convert objects.
#[derive(Clone)]
pub enum ConversionMethod {
    /// Functions of this process. Objects of other versions pass the hub, by whose rules every write is judged.
    InMemory(InMemoryConversion),
    /// Only `apiVersion` changes, which is the strategy `None` of a CRD; then the schema of the version prunes and defaults.
    /// Writes are judged by the version of the request alone.
    Rename,
    /// A converter that is awaited. What it gives is pruned and defaulted by the schema of the version. Writes are judged by
    /// the version of the request alone.
    Asynchronous(Arc<dyn Converter>),
}

/// The one or two functions that carry objects between a version and its hub. Objects are whole documents; the
/// functions leave `metadata` as it is and neither read nor write `apiVersion` and `kind`.
#[derive(Clone, Copy)]
pub struct InMemoryConversion {
    /// From this version to the hub.
    pub to_hub: fn(Value) -> Result<Value, String>,
    /// From the hub to this version.
    pub from_hub: fn(Value) -> Result<Value, String>,
    /// The same two from JSON to JSON, where there is such a way. It may refuse what the way above carries, but what it
    /// gives is the same.
    pub json: Option<JsonConversion>,
}

/// The functions of a [`Conversion`] from JSON to JSON, without documents between.
#[derive(Clone, Copy)]
pub struct JsonConversion {
    /// From this version to the hub.
    pub to_hub: ConvertJson,
    /// From the hub to this version.
    pub from_hub: ConvertJson,
}

/// Takes a document and appends, as JSON in the order of the schema, the converted one without its `metadata`,
/// `apiVersion` and `kind`.
pub type ConvertJson = fn(&[u8], &Schema, &mut Vec<u8>) -> Result<(), String>;

/// Converts objects between all versions of a kind, for instance by asking a webhook.
#[async_trait]
pub trait Converter: fmt::Debug + Send + Sync + 'static {
    /// Converts documents, each a whole object as JSON with its `apiVersion`, which is not `to`; one call has all documents
    /// of a list or a page. Gives as many in the same order, with `apiVersion` being `to`. Kind, name, namespace and uid must
    /// stay; of the rest of the metadata only labels and annotations may change, and other changes are ignored. The same
    /// document must give the same result each time. Called while clients wait, so the time it takes must be limited.
    ///
    /// # Errors
    /// The reason, which clients read behind `conversion webhook for GROUP/VERSION, Kind=KIND failed: `.
    async fn convert(&self, documents: Vec<Bytes>, to: &GroupVersion)
    -> Result<Vec<Bytes>, String>;
}

impl Conversion {
    /// The functions, of a version that converts in memory.
    pub fn in_memory(&self) -> Option<&InMemoryConversion> {
        match &self.method {
            ConversionMethod::InMemory(functions) => Some(functions),
            ConversionMethod::Rename | ConversionMethod::Asynchronous(_) => None,
        }
    }
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match &self.method {
            ConversionMethod::InMemory(_) => "in memory",
            ConversionMethod::Rename => "by a new apiVersion",
            ConversionMethod::Asynchronous(_) => "asynchronously",
        };
        write!(
            f,
            "Conversion({method} to {} of {})",
            self.hub_kind, self.hub_version
        )
    }
}
