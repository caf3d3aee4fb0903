//! The JSON of objects in requests.

use bytes::Bytes;
use serde::Serialize;

use super::object::{ApiObject, ApiResource};
use crate::apply::Document;
use crate::error::Error;

/// The JSON of an object, with its type.
pub(super) fn object<K: ApiObject>(resource: &ApiResource, object: &K) -> Result<Bytes, Error> {
    if K::HAS_TYPE_FIELDS {
        // Items of a list have neither.
        return with_missing_type(resource, object);
    }
    with_type(resource, &json(object)?)
}

/// The JSON of a value.
pub(super) fn json(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value)
        .map_err(|error| Error::Request(format!("cannot encode the body: {error}")))
}

/// Puts `apiVersion` and `kind` before the fields of an object.
fn with_type(resource: &ApiResource, json: &[u8]) -> Result<Bytes, Error> {
    let Some(fields) = json.strip_prefix(b"{") else {
        let kind = &resource.kind;
        return Err(Error::Request(format!("a {kind} is not a JSON object")));
    };
    let (version, kind) = (resource.api_version(), &*resource.kind);
    let mut out = Vec::with_capacity(json.len() + version.len() + kind.len() + 32);
    out.extend_from_slice(b"{\"apiVersion\":");
    out.extend_from_slice(&self::json(&version)?);
    out.extend_from_slice(b",\"kind\":");
    out.extend_from_slice(&self::json(kind)?);
    if fields != b"}" {
        out.push(b',');
    }
    out.extend_from_slice(fields);
    Ok(out.into())
}

/// Adds `apiVersion` and `kind` if the object does not have them.
fn with_missing_type<K: ApiObject>(resource: &ApiResource, object: &K) -> Result<Bytes, Error> {
    let mut fields = fields(resource, object)?;
    fields
        .entry("apiVersion")
        .or_insert_with(|| resource.api_version().into());
    fields
        .entry("kind")
        .or_insert_with(|| (*resource.kind).into());
    Ok(json(&fields)?.into())
}

/// The fields of a value that is an object.
fn fields(
    resource: &ApiResource,
    value: &(impl Serialize + ?Sized),
) -> Result<serde_json::Map<String, serde_json::Value>, Error> {
    let value = serde_json::to_value(value)
        .map_err(|error| Error::Request(format!("cannot encode the body: {error}")))?;
    match value {
        serde_json::Value::Object(fields) => Ok(fields),
        _ => {
            let kind = &resource.kind;
            Err(Error::Request(format!("a {kind} is not a JSON object")))
        }
    }
}

/// As [`configuration`], of any value; the name is added too.
pub(super) fn named_configuration(
    resource: &ApiResource,
    name: &str,
    value: &(impl Serialize + ?Sized),
) -> Result<Bytes, Error> {
    let mut fields = fields(resource, value)?;
    let metadata = fields
        .entry("metadata")
        .or_insert_with(|| serde_json::json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.entry("name").or_insert_with(|| name.into());
    }
    configuration(resource, fields)
}

/// The JSON of an apply configuration: its type is added if it has none.
pub(super) fn configuration(resource: &ApiResource, mut fields: Document) -> Result<Bytes, Error> {
    let api_version = fields
        .entry("apiVersion")
        .or_insert_with(|| resource.api_version().into());
    if *api_version != resource.api_version() {
        let problem = format!(
            "the configuration has apiVersion {api_version}, and the client {:?}",
            resource.api_version()
        );
        return Err(Error::Request(problem));
    }
    fields
        .entry("kind")
        .or_insert_with(|| (*resource.kind).into());
    // What the server refuses in an apply: the fields of an object that was read.
    if let Some(metadata) = fields
        .get_mut("metadata")
        .and_then(serde_json::Value::as_object_mut)
    {
        metadata.remove("managedFields");
    }
    Ok(json(&fields)?.into())
}
