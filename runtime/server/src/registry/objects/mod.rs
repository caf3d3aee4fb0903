//! The forms of an object: decoded, stored bytes, served bytes, converted; and the kind that converts between them.
//! ARCHITECTURE.md has a diagram of them.

pub(super) mod asynchronous;
pub(super) mod body_kind;
pub(super) mod cached_object;
pub(super) mod converted;
mod converter_call;
pub(super) mod document;
pub(super) mod field_finder;
pub(super) mod hooks;
pub(super) mod items;
pub(super) mod json;
pub(super) mod key;
pub(super) mod kind;
pub(super) mod kind_cache;
pub(super) mod kind_version;
pub(super) mod listed;
pub(super) mod normalizer;
pub(super) mod prepared_object;
pub(super) mod present_object;
pub(super) mod read_counts;
pub(super) mod readers;
pub(super) mod recent_conversions;
pub(super) mod scale;
mod schema_checks;
pub(super) mod stored_form;
pub(super) mod stored_value;
pub(super) mod version_schema;
pub(super) mod versioned_resource;
