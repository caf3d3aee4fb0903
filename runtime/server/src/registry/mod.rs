//! REST semantics of create, get, list, watch, update, patch and delete, written once for type-erased objects.
//!
//! This module does not depend on HTTP: errors have a reason in place of a status code, warnings are collected in the
//! request context. A kind contributes data ([`apiloom_meta::ResourceDef`]) and hooks ([`Strategy`]); adding one costs
//! no new copy of this code.

mod catalog;
mod endpoint;
mod error;
mod large;
mod objects;
mod options;
mod problems;
mod reads;
mod rules;
mod writes;

pub use apiloom_apis::core::v1::{Namespace, NamespaceCondition, NamespaceSpec, NamespaceStatus};
pub use catalog::builder::RegistryBuilder;
pub(crate) use catalog::builder::{
    DEFAULT_DELETE_COLLECTION_WORKERS, DEFAULT_EVENT_TTL, DEFAULT_MAX_OBJECT_BYTES,
    default_history_bytes, default_max_definition_bytes,
};
pub use catalog::built_in::BuiltIn;
pub use catalog::change::CatalogChange;
pub use catalog::emulation::EmulationVersion;
pub use catalog::migration::{Migration, MigrationOptions, MigrationReport};
pub use catalog::report::{CacheReport, ResourceReport};
pub use catalog::resources::Registry;
pub use catalog::snapshot::{Catalog, ServedGroup};
pub use endpoint::{
    CreateSubresource, Endpoint, GetSubresource, Subresource, SubresourceRequest, SubresourceVerbs,
    UpdateSubresource, subresource_verbs,
};
pub(crate) use endpoint::{EndpointId, PatchFormats, SubresourceAnswer};
pub(crate) use error::{handler_timeout, no_type, refused_patch};
#[cfg(feature = "apis-apiextensions")]
pub(crate) use large::off_thread;
pub(crate) use large::{LargeWork, OffThread, check_wanted};
pub use objects::document::{Document, EncodedObject};
pub use objects::items::Items;
pub use objects::json::Json;
pub use objects::read_counts::ListCounts;
pub use objects::stored_value::StorageMediaType;
pub(crate) use objects::version_schema::VersionSchema;
pub use options::{
    CreateOptions, DeleteOptions, FieldValidation, GetOptions, ListOptions, PatchOptions,
    Preconditions, PropagationPolicy, RequestContext, UpdateOptions, UserInfo, VersionMatch,
};
pub(crate) use problems::with_places;
pub use reads::Reads;
pub use reads::event::{WatchEvent, WatchEventKind};
pub use reads::list::ListResult;
pub use reads::lister::Lister;
pub(crate) use reads::lister::Listers;
pub use reads::watch::WatchEvents;
pub use rules::admission::{
    Admission, AdmissionContext, AdmissionRequest, AdmittedObject, Operation,
};
#[cfg(feature = "apis-apiregistration")]
pub(crate) use rules::built_in::api_service as api_service_rules;
#[cfg(feature = "apis-apiextensions")]
pub(crate) use rules::built_in::custom_resource_definition as definition_rules;
#[cfg(feature = "apis-apiextensions")]
pub(crate) use rules::definition_room::NoRoom;
pub use rules::handler::Handler;
pub use rules::strategy::Strategy;
pub use writes::Writes;
pub use writes::apply::AppliedDocument;
pub use writes::results::{DeleteResult, WrittenObject};

#[cfg(test)]
mod tests;
