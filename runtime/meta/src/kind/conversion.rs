//! Conversion of objects between the versions of a kind: in memory, by another `apiVersion` only, or by an
//! asynchronous converter.

use std::fmt;
#[cfg(feature = "schema")]
use std::sync::Arc;
#[cfg(feature = "schema")]
use std::time::Duration;

#[cfg(feature = "schema")]
use async_trait::async_trait;
#[cfg(feature = "schema")]
use bytes::Bytes;
use serde_json::Value;

use super::SmolStr;
use crate::gvk::GroupResource;
#[cfg(feature = "schema")]
use crate::gvk::GroupVersion;
use crate::schema::Schema;

/// Conversion of a version's objects to the hub and back. All versions of a kind use the same method.
#[derive(Clone)]
pub struct Conversion {
    /// Group and resource of the hub, if it is the kind of another group, in whose store the objects are kept.
    pub hub_resource: Option<GroupResource>,
    /// Version of the hub.
    pub hub_version: SmolStr,
    /// Kind of the hub, equal to that of this version.
    pub hub_kind: SmolStr,
    /// Method of conversion.
    pub method: ConversionMethod,
}

/// A method of conversion.
#[derive(Clone)]
pub enum ConversionMethod {
    /// Functions of this process. Objects are converted by way of the hub, and the hub's schema and strategy validate
    /// every write.
    InMemory(InMemoryConversion),
    /// Only `apiVersion` is changed (strategy `None` of a CRD); then the target version's schema prunes and defaults.
    /// Writes are validated only in the version of the request.
    Rename,
    /// An asynchronous converter (strategy `Webhook` of a CRD), whose results the target version's schema prunes and
    /// defaults. Writes are validated only in the version of the request.
    #[cfg(feature = "schema")]
    Asynchronous(Arc<dyn Converter>),
}

/// Functions that convert objects between a version and its hub. Objects are complete documents; the functions copy
/// `metadata` unchanged, and neither read nor write `apiVersion` and `kind`.
#[derive(Clone, Copy)]
pub struct InMemoryConversion {
    /// Converts from this version to the hub.
    pub to_hub: fn(Value) -> Result<Value, String>,
    /// Converts from the hub to this version.
    pub from_hub: fn(Value) -> Result<Value, String>,
    /// The same conversions from JSON text to JSON text, where supported. They may fail where those above succeed, but
    /// must not give other results.
    pub json: Option<JsonConversion>,
}

/// The functions of a [`Conversion`] from JSON text to JSON text, without decoded documents in between.
#[derive(Clone, Copy)]
pub struct JsonConversion {
    /// Converts from this version to the hub.
    pub to_hub: ConvertJson,
    /// Converts from the hub to this version.
    pub from_hub: ConvertJson,
}

/// Converts a document, and appends the result as JSON in the order of the schema, without its `metadata`,
/// `apiVersion` and `kind`.
pub type ConvertJson = fn(&[u8], &Schema, &mut Vec<u8>) -> Result<(), String>;

/// Converts objects between all versions of a kind, for instance by calling a webhook.
#[cfg(feature = "schema")]
#[async_trait]
pub trait Converter: fmt::Debug + Send + Sync + 'static {
    /// Converts documents, each a complete object as JSON with an `apiVersion` other than `to`; one call has all
    /// documents of a list or a page. Returns as many in the same order, with the `apiVersion` `to`. Kind, name,
    /// namespace and uid must not change; of the other metadata, only changes of labels and annotations are kept.
    /// Conversion must be deterministic. Clients wait for it, so its duration must be limited.
    ///
    /// # Errors
    /// The reason, which clients get after `conversion webhook for GROUP/VERSION, Kind=KIND failed: `.
    async fn convert(&self, documents: Vec<Bytes>, to: &GroupVersion)
    -> Result<Vec<Bytes>, String>;

    /// Called when a call has failed, or all of its results were checked, for metrics. Not called if the request ended before.
    /// Does nothing by default.
    fn finished(&self, report: &ConversionReport<'_>) {
        let _ = report;
    }
}

/// What became of a call of a [`Converter`].
#[cfg(feature = "schema")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionReport<'a> {
    /// The version in which the first of the documents was.
    pub from: &'a str,
    /// The version in which they were wanted.
    pub to: &'a GroupVersion,
    /// The time since the call began.
    pub elapsed: Duration,
    /// The result.
    pub result: ConversionResult,
}

/// The result of a call of a [`Converter`].
#[cfg(feature = "schema")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionResult {
    /// All documents were converted.
    Accepted,
    /// The converter failed.
    Failed,
    /// There are more or fewer results than documents.
    WrongNumber,
    /// A result is another object, in another version, or malformed.
    InvalidObject,
}

impl Conversion {
    /// The functions of a version that is converted in memory.
    pub fn in_memory(&self) -> Option<&InMemoryConversion> {
        match &self.method {
            ConversionMethod::InMemory(functions) => Some(functions),
            #[cfg(feature = "schema")]
            ConversionMethod::Asynchronous(_) => None,
            ConversionMethod::Rename => None,
        }
    }
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match &self.method {
            ConversionMethod::InMemory(_) => "in memory",
            ConversionMethod::Rename => "by a new apiVersion",
            #[cfg(feature = "schema")]
            ConversionMethod::Asynchronous(_) => "asynchronously",
        };
        write!(
            f,
            "Conversion({method} to {} of {})",
            self.hub_kind, self.hub_version
        )
    }
}
