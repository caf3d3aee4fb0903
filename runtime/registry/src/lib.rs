//! REST semantics of create, get, list, watch, update, patch and delete, written once for type-erased objects.
//!
//! This module does not depend on HTTP: errors have a reason in place of a status code, warnings are collected in the
//! request context. A kind contributes data ([`apiloom_meta::ResourceDef`]) and hooks ([`Strategy`]); adding one costs
//! no new copy of this code.
//!
//! # Invariants
//!
//! - No kind is known here. Those of Kubernetes, that of namespaces too, are registered as the server's own
//!   (`registry/catalog/own_kinds.rs`) by `apiloom-kinds`, which has their types and rules.
//! - The registry has wings: an `Endpoint` (one resource in one version) holds its `Reads` and its `Writes`, which share a
//!   `VersionedResource` and do not know each other; what needs both, deletecollection, is the endpoint's. A test forbids uses
//!   in the other directions.
//! - Reads and writes are those of a store, or of code: a kind without a store has a `Read` and a `Write` (`registry/objects/code.rs`), by which the
//!   program answers. Which of them it is was decided with the endpoint; the futures of the store are in no box. What code answers is checked
//!   (`registry/objects/code_object.rs`): an object of another name or namespace than that of the request reaches no client.
//! - What is served is one immutable `Catalog` (`registry/catalog/snapshot.rs`), made by one function of kinds, groups and
//!   settings, and published whole: a request keeps the catalog that it began with, and documents are made once for each.
//!   A changed kind gets new endpoints (ids are never used twice), and only watches of endpoints that left end.
//! - Stored values hold no resourceVersion. Reads apply the current schema: an object stored before its type got a default is
//!   served with the default, at an unchanged resourceVersion.
//! - A list keeps alive only the state that it shows. Its response is complete or an error: steps that can fail run before
//!   the first byte is sent, and a later failure breaks the connection off.
//! - The schema of a version is made once (`registry/objects/version_schema.rs`). That of a kind which generated code registers
//!   (`lazy_kind`) is made when a request, a stored object or a document needs it; `apiloom generate`, whose dump registers
//!   all kinds with their checks, has found whether it is structural, its defaults fit it, and it has the columns and
//!   selectable fields. A kind that a program registers itself, or a document, is checked when it is registered. The checks are
//!   those of `registry/objects/schema_checks.rs` in both cases; requests for a kind that was built although it fails them are
//!   500, with the same lines. Patterns and the tree of ObjectMeta are shared by all schemas.
//! - What a definition makes a server keep is bounded in sum, before anything is compiled (`schema/engine/structural/footprint.rs`: patterns, rules,
//!   values and fields of all versions), and so is what all definitions do (`registry/rules/definition_room.rs`, `--max-definition-bytes`): the
//!   admission plugin DefinitionQuota refuses with 403 what does not fit, and the publisher serves no definition without room, the older ones first,
//!   and says so in the condition ExceedsQuota. Patterns are Go's (`meta/regexp`): parsed when a schema is built, compiled by the first search, shared
//!   by text, and kept within a bound of the process.
//! - A revision names a state of the store, never an object: the writes of one transaction share it.
//! - A write starts from the cached object, with its revision as the precondition. A refusal and a dry run are never decided by the
//!   cache: they are repeated with the stored object. So is a write without change, unless the cache has reached the revision of a
//!   store to which no other process writes, and knows that the stored bytes are those that the write would store
//!   (`registry/writes/commit.rs`, `CachedObject::is_in_stored_form`).
//! - The size limit of an object applies to its JSON without resourceVersion, also if it is stored as Protobuf, on every write after patch, defaults, rules and admission. Steps
//!   before it that could expand a body (aliases, copies of a JSON patch, defaults) have limits of their own.
//! - A written object is encoded once: the stored bytes are those that are served, without their resourceVersion, or these
//!   converted to Protobuf. An object is stored as Protobuf only if a read gives the same JSON back, else as JSON: what is read
//!   does not depend on `--storage-media-type`. The cache
//!   reuses the bytes that its own server wrote. Of other bytes it decodes only those that are not already canonical for
//!   the current schema, that is, equal to the result of decoding, pruning, defaulting and encoding (`Encoder::verbatim`
//!   checks this in one pass; it may miss canonical bytes but never accepts others). Of a kind whose strategy has defaults,
//!   which are code, the bytes must also be such that those change nothing; if they are of another version than the stored one,
//!   all objects are decoded.
//! - Stored values are encrypted after that and decrypted before (`registry/objects/encryption.rs`), in `registry/objects/kind.rs` alone. Whether
//!   a write changes something is asked of plain values; the cipher says whether a stored one is stale, which makes such a write store it again.
//! - REST logic exists once, for type-erased objects. A kind adds data and hooks, never a copy of the code.
//! - A migration (`POST /storage/migrate`, `registry/catalog/migration.rs`) rewrites stored objects whose plain bytes differ from their
//!   stored form, or whose encryption is stale. One function makes that form (`registry/objects/stored_form.rs`): decoded, converted, with
//!   defaults, encoded. It writes only at the revision that it read, runs no rules, changes no object and keeps its time to live; admission and
//!   validation are for changes. It never rewrites an object whose stored bytes have fields that the server does not know.
//! - Which versions a group has follows from its release (`registry/catalog/groups.rs`): that of the build, or an emulated one
//!   (`registry/catalog/emulation.rs`), which decides the storage version of a kind too if it does not have the declared one.
//! - Router, discovery and OpenAPI read one list of verbs and of subresources, the definition's; a subresource without a
//!   handler serves no verb that its kind skips. Roles are generated from the attributes from which the definition is made. What is special about a
//!   kind is data of its definition, never a comparison with its name.
//! - A lister is a view of the watch cache, which decodes each object once for it and counts that as memory of the object. It
//!   never waits, and shows every write that its own server acknowledged before: a write of a kind that has listers is
//!   acknowledged when the cache has it (`registry/objects/listed.rs`). Writes of other servers over the store follow later.
//! - A write decodes its object once for the hooks of a strategy and for admission plugins: `Object` keeps its typed form until a
//!   field outside of the metadata changes, by other code than the hooks themselves (`meta/src/object/typed.rs`).
//! - Changes of a user's typed hook are applied as a difference, so fields that the type does not know are kept.
//! - Kinds that convert by a new `apiVersion` or asynchronously have no hub: writes, deletions that mark an object too, are judged by
//!   the version of the request and stored as they are converted, as in kube-apiserver. The watch cache holds their objects in the
//!   version in which they are stored. Readers convert: of an asynchronous converter a list is one batch, made before the response
//!   begins; watchers share the conversion of a change. It may change labels, so label selectors are asked after it. The following
//!   holds for the others.
//! - Every write in any version is validated by the hub's schema. An update does not change what its version cannot express:
//!   the change is applied to the hub and to the stored version as a difference (`registry/writes/versions.rs`).
//! - In a version that is not stored, a list is converted while it is sent, but checked first: an object that was not yet
//!   converted to that version is converted once before the response begins, so that a failure is a 500 for the whole list.
//!   Objects that were converted before are not checked again. If a conversion still fails, which needs a function without
//!   stable results, the response is broken off, so that no client takes it for complete. Watchers share conversions.
//! - Every write keeps managedFields (`registry/writes/owners`, over the sets and documents of `meta/managed_fields`),
//!   before mutating admission and before the strategy, so that what these change has no owner. The fields of an entry are
//!   those of its own version: the object is converted to each version that an entry has, once a write. A write cannot fail
//!   by it; an apply can. Of a kind without a hub nothing is pruned for that, as in kube-apiserver: if the other version does not
//!   know a field, a write leaves no entries, and an apply fails.
//! - An apply merges its document into the present object, removes what its manager applied before and no other entry has,
//!   and is then an update like any other, so that admission, strategy and validation know nothing of it.

pub mod audit;
pub mod auth;
mod catalog;
mod code;
mod endpoint;
mod error;
mod large;
pub mod memory;
mod objects;
mod options;
mod problems;
mod reads;
mod recent;
mod rules;
mod user_info;
mod writes;

pub use catalog::builder::RegistryBuilder;
pub use catalog::builder::{
    DEFAULT_DELETE_COLLECTION_WORKERS, DEFAULT_EVENT_TTL, DEFAULT_MAX_OBJECT_BYTES,
    default_history_bytes, default_max_definition_bytes,
};
pub use catalog::change::CatalogChange;
pub use catalog::emulation::EmulationVersion;
pub use catalog::migration::{Migration, MigrationOptions, MigrationReport};
pub use catalog::report::{CacheReport, ResourceReport};
pub use catalog::resources::Registry;
pub use catalog::snapshot::{Catalog, ServedGroup};
pub use code::handler::Handler;
pub use code::reader::{ObjectEvents, ObjectList, Reader};
pub use code::writer::Writer;
pub use endpoint::{
    CreateSubresource, Endpoint, GetSubresource, Subresource, SubresourceRequest, SubresourceVerbs,
    UpdateSubresource, subresource_verbs,
};
pub use endpoint::{EndpointId, PatchFormats, SubresourceAnswer};
pub use error::{handler_timeout, no_type, refused_patch};
pub use large::{LargeWork, OffThread, check_wanted, check_wanted_after, off_thread};
pub use objects::code::ObjectEvent;
pub use objects::document::{Document, EncodedObject};
pub use objects::encryption::{
    ENCRYPTED_DATA, ENCRYPTED_PREFIX, Encryption, PlainValue, ValueCipher,
};
pub use objects::hooks::ErasedStrategy;
pub use objects::items::Items;
pub use objects::json::Json;
pub use objects::read_counts::ListCounts;
pub use objects::stored_value::StorageMediaType;
pub use objects::version_schema::VersionSchema;
pub use options::{
    CreateOptions, DeleteOptions, FieldValidation, GetOptions, ListOptions, PatchOptions,
    Preconditions, PropagationPolicy, RequestContext, Reservation, UpdateOptions, VersionMatch,
};
pub use problems::with_places;
pub use reads::Reads;
pub use reads::event::{WatchEvent, WatchEventKind};
pub use reads::list::ListResult;
pub use reads::lister::{Lister, Listers, SeenState};
pub use reads::stored::StoredReads;
pub use reads::watch::StoredEvents;
pub use reads::watch_events::WatchEvents;
pub use rules::admission::{
    Admission, AdmissionContext, AdmissionRequest, AdmittedObject, Operation,
};
pub use rules::definition_room::{DefinitionRoom, NoRoom, ReservedRoom};
pub use rules::strategy::{Strategy, TypedStrategy};
pub use user_info::UserInfo;
pub use writes::Writes;
pub use writes::apply::AppliedDocument;
pub use writes::request::{WriteOptions, WriteRequest};
pub use writes::results::{DeleteResult, WrittenObject};

#[cfg(test)]
mod tests;
