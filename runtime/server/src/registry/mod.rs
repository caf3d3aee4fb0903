//! What create, get, list, watch, update, patch and delete mean, written once over the erased object.
//!
//! Knows no HTTP: errors carry a reason, warnings are collected in the request context. A kind contributes data
//! ([`apiloom_meta::ResourceDef`]) and hooks ([`Strategy`]); adding one costs no new copy of this code.

mod admission;
mod attempt;
mod builder;
mod cached;
mod cached_object;
mod continue_token;
mod converted;
mod count;
mod create;
mod decode;
mod delete;
mod delete_collection;
mod document;
mod draft;
mod endpoint;
mod error;
mod field_values;
mod get;
mod items;
mod json;
mod key;
mod kind;
mod kind_version;
mod large;
mod list;
mod lister;
mod located;
mod namespace;
mod options;
mod patch;
mod prepared;
mod present;
mod read_counts;
mod readers;
mod recent_conversions;
mod remaining;
mod report;
mod resources;
mod runtime_config;
mod selection;
mod served;
mod stamp;
mod strategy;
mod target;
mod update;
mod validate;
mod watch;

pub use admission::{Admission, AdmissionContext, AdmissionRequest, AdmittedObject, Operation};
pub(crate) use builder::DEFAULT_MAX_OBJECT_BYTES;
pub use builder::RegistryBuilder;
pub(crate) use cached_object::StateId;
pub use document::{Document, Encoded};
pub use endpoint::{Deleted, Endpoint, Listed, WatchEvent, WatchEventKind, Written};
pub(crate) use error::{refused_patch, unrecognized};
pub use items::Items;
pub use json::Json;
pub(crate) use large::OffThread;
pub use lister::Lister;
pub(crate) use located::located;
pub use namespace::{Namespace, NamespaceCondition, NamespaceSpec, NamespaceStatus};
pub use options::{
    CreateOptions, DeleteOptions, FieldValidation, GetOptions, ListOptions, PatchOptions,
    Preconditions, PropagationPolicy, RequestContext, UpdateOptions, UserInfo, VersionMatch,
};
pub use read_counts::ListCounts;
pub use report::{CacheReport, ResourceReport};
pub use resources::{Registry, ServedGroup};
pub use strategy::Strategy;
pub use watch::WatchEvents;

#[cfg(test)]
mod tests;
