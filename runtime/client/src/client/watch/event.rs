//! Events, and their decoding from a line.

use std::borrow::Cow;

use apiloom_meta::Status;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::super::excerpt;
use super::super::list::{Identity, Undecodable, undecodable};
use super::super::object::ApiObject;
use super::super::request::decode_error;
use crate::error::{DecodeError, Error};

/// A change of the watched objects.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent<K> {
    /// The object was created, or is selected now.
    Added(K),
    /// The object was changed.
    Modified(K),
    /// The object was deleted, or is no longer selected: its last state, with the resourceVersion of the deletion.
    Deleted(K),
    /// There are no changes before this point which were not sent.
    Bookmark(Bookmark),
    /// A change of an object that is not of the expected form. The watch goes on.
    Undecodable(Box<Undecodable>),
}

/// How far a watch has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bookmark {
    /// Where a new watch can begin.
    pub resource_version: String,
    /// Whether all objects that existed when the watch began were sent before: once, if initial events were asked for.
    pub ends_initial_events: bool,
}

impl<K: ApiObject> WatchEvent<K> {
    /// The resourceVersion of the event; empty if it is unknown. A later watch can begin there, unless the event is one of
    /// the initial `Added` ones, which are not in the order of changes.
    pub fn resource_version(&self) -> &str {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => {
                object.resource_version()
            }
            Self::Bookmark(bookmark) => &bookmark.resource_version,
            Self::Undecodable(object) => &object.resource_version,
        }
    }
}

/// Why a line is not an event.
pub(super) enum LineError {
    /// The stream ends: it is this failure of the server.
    Failure(Error),
    /// It is not the JSON of an event at all.
    Malformed(DecodeError),
    /// It is an event of this type, which this client does not know.
    Unknown(String),
}

/// Decodes a line.
pub(super) fn decode<K: ApiObject>(
    line: &[u8],
    path: &str,
    kind: &str,
) -> Result<WatchEvent<K>, LineError> {
    let (event_type, object) = match split(line) {
        Some((event_type, object)) => (Cow::Borrowed(event_type), object),
        // Another order of the fields, or spaces.
        None => split_any(line)
            .map_err(|error| LineError::Malformed(decode_error(&error, line, path, kind)))?,
    };
    let wrap: fn(K) -> WatchEvent<K> = match &*event_type {
        "ADDED" => WatchEvent::Added,
        "MODIFIED" => WatchEvent::Modified,
        "DELETED" => WatchEvent::Deleted,
        // Bookmarks are not valid objects of their kind: they have no spec, and mostly no name.
        "BOOKMARK" => {
            let identity = Identity::of(object);
            return Ok(WatchEvent::Bookmark(Bookmark {
                resource_version: identity.resource_version,
                ends_initial_events: identity.ends_initial_events,
            }));
        }
        "ERROR" => {
            let status = serde_json::from_slice::<Status>(object);
            return Err(status.map_or_else(
                |error| LineError::Malformed(decode_error(&error, object, path, "Status")),
                |status| LineError::Failure(Error::Api(Box::new(status))),
            ));
        }
        unknown => return Err(LineError::Unknown(excerpt::text(unknown.as_bytes()))),
    };
    match serde_json::from_slice::<K>(object) {
        Ok(decoded) => Ok(wrap(decoded)),
        Err(error) => {
            // A line that is no JSON at all belongs to no event. The error does not tell: JSON that is too deep for the
            // type, or has a number that is too large, is called a syntax error too.
            if serde_json::from_slice::<IgnoredAny>(object).is_err() {
                return Err(LineError::Malformed(decode_error(&error, line, path, kind)));
            }
            let found = undecodable(&error, object, path, kind);
            Ok(WatchEvent::Undecodable(Box::new(found)))
        }
    }
}

/// The type and the object of `{"type":"..","object":..}`, as servers write it; `None` if it is written otherwise.
fn split(line: &[u8]) -> Option<(&str, &[u8])> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let end = memchr::memchr(b'"', rest)?;
    let (event_type, rest) = rest.split_at(end);
    let object = rest.strip_prefix(b"\",\"object\":")?.strip_suffix(b"}")?;
    let is_plain = event_type.iter().all(u8::is_ascii_uppercase);
    let event_type = std::str::from_utf8(event_type).ok()?;
    is_plain.then_some((event_type, object))
}

/// The same for all spellings.
fn split_any(line: &[u8]) -> Result<(Cow<'_, str>, &[u8]), serde_json::Error> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow, rename = "type")]
        event_type: Cow<'a, str>,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let raw: Raw<'_> = serde_json::from_slice(line)?;
    Ok((raw.event_type, raw.object.get().as_bytes()))
}
