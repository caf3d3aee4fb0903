//! An object in its forms: decoded, as stored bytes, as served bytes, converted; and the kind that reads and makes them.
//! ARCHITECTURE.md draws them.

pub(super) mod asynchronous;
pub(super) mod cached_object;
pub(super) mod converted;
pub(super) mod document;
pub(super) mod items;
pub(super) mod json;
pub(super) mod key;
pub(super) mod kind;
pub(super) mod kind_cache;
pub(super) mod kind_version;
pub(super) mod prepared;
pub(super) mod present;
pub(super) mod read_counts;
pub(super) mod readers;
pub(super) mod recent_conversions;
mod schema_checks;
pub(super) mod served;
pub(super) mod version_schema;
pub(super) mod versioned_resource;
