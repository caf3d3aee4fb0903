//! A kind in all its versions: schemas, conversion, hooks, and the storage of its objects.
//!
//! Objects are decoded from and encoded for the store here; `prepared.rs` recognizes stored bytes that need no
//! decoding. Invariant: stored bytes are in the storage version, without resourceVersion; every read prunes and
//! defaults them by the current schema of the version that they have, however old they are. A conversion only prunes: it
//! applies no defaults of the version that it leads to.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use apiloom_meta::codec::{Decoder, Encoder};
use apiloom_meta::field::go_quote;
use apiloom_meta::kind::{Converter, ProtobufMessage, Scope};
use apiloom_meta::schema::merge_difference;
use apiloom_meta::{ApiError, GroupKind, GroupResource, Object, ResourceDef, interrupt};
use apiloom_storage::{Entry, Revision, Storage, StorageError};
use bytes::Bytes;

use super::document::EncodedObject;
use super::hooks::ErasedStrategy;
use super::key::Keys;
use super::kind_version::{KindVersion, VersionIndex};
use super::listed::ListedKind;
use super::prepared_object::{PendingWrites, PreparedObject};
use super::read_counts::ReadCounts;
use super::readers::Readers;
use super::recent_conversions::RecentConversions;
use super::stored_value::{self, StorageMediaType};
use crate::error::from_storage;
use crate::large::LargeDocuments;

/// A kind in all its versions, with its store.
#[derive(Debug)]
pub struct Kind {
    pub(crate) versions: Vec<KindVersion>,
    pub(crate) hub: VersionIndex,
    /// How objects are converted between versions.
    pub(crate) conversion: KindConversion,
    /// Whether the watch cache has, or had, objects of other versions than the storage version: they are converted
    /// by their readers.
    pub(crate) has_other_versions: AtomicBool,
    pub(crate) storage_version: VersionIndex,
    /// Group and resource of the hub.
    pub(crate) resource: GroupResource,
    /// Group and kind of the hub.
    pub(crate) group_kind: GroupKind,
    pub(crate) scope: Scope,
    /// Whether this is a kind of the server itself: Namespace, or a built-in kind that its builder was asked for.
    pub(crate) is_own: bool,
    /// Whether the definition of a custom resource is being deleted: no objects are created any more. Shared by all kinds that
    /// are made of the same definition, so that a request that began with an earlier one sees it too.
    pub(crate) is_terminating: Arc<AtomicBool>,
    pub store: Arc<dyn Storage>,
    /// The keys of its objects in the store.
    pub(crate) keys: Keys,
    /// The earlier release that one of its groups emulates, in words.
    pub(crate) emulates: Option<String>,
    /// Format of the objects that are written. Those that are read may have any.
    pub(crate) media_type: StorageMediaType,
    /// Newest revision of an acknowledged write of this kind; listers wait until the cache has it.
    pub(crate) newest_write: AtomicU64,
    /// Set if the kind has listers.
    pub(crate) listed: OnceLock<ListedKind>,
    /// Read counters, for metrics.
    pub(crate) reads: ReadCounts,
    /// For each version, the conversions of recent changes, shared by watchers; empty for a single version.
    pub(crate) converted: Vec<RecentConversions>,
    /// Encodings of writes in flight, for the watch cache.
    pub(crate) pending_writes: PendingWrites,
    /// Lists and initial events that are being sent.
    pub(crate) readers: Readers,
}

/// How objects of a kind are converted between versions.
#[derive(Debug)]
pub(crate) enum KindConversion {
    /// In memory, by way of the hub, with the functions of each version's definition.
    InMemory,
    /// By another `apiVersion` only (strategy `None` of a CRD).
    Rename,
    /// By an asynchronous converter (strategy `Webhook` of a CRD).
    Asynchronous(AsynchronousConversion),
}

/// An asynchronous converter, and capacity for the large documents of its kind alone: a few converters that do not answer hold up
/// no other kinds.
#[derive(Debug)]
pub(crate) struct AsynchronousConversion {
    pub(crate) converter: Arc<dyn Converter>,
    /// For writes, which keep it while they wait for the converter.
    pub(crate) writes: LargeDocuments,
    /// For results, while they are decoded.
    pub(crate) results: LargeDocuments,
}

impl AsynchronousConversion {
    pub(crate) fn new(converter: Arc<dyn Converter>) -> Self {
        Self {
            converter,
            writes: LargeDocuments::of_converter(),
            results: LargeDocuments::of_results(),
        }
    }
}

impl Kind {
    /// Whether objects are kept in a store.
    pub(crate) fn has_store(&self) -> bool {
        self.stored_def().has_store
    }

    /// The uid of the definition of a custom resource that a client made.
    fn definition_uid(&self) -> Option<&str> {
        let custom = self.stored_def().custom.as_ref()?;
        Some(custom.uid.as_str()).filter(|uid| !uid.is_empty())
    }

    /// Whether a kind was made of the same definition of a custom resource.
    pub(crate) fn has_definition_of(&self, other: &Self) -> bool {
        let uid = self.definition_uid();
        uid.is_some() && uid == other.definition_uid()
    }

    /// Refuses creates from now on, if a client made the definition: it is gone.
    pub(crate) fn end_definition(&self) {
        if self.definition_uid().is_some() {
            self.is_terminating.store(true, Ordering::Release);
        }
    }

    /// The definition of the storage version.
    pub(crate) fn stored_def(&self) -> &ResourceDef {
        &self.versions[self.storage_version].def
    }

    /// The version with this `apiVersion`.
    pub(crate) fn version_of(&self, api_version: &str) -> Option<VersionIndex> {
        self.versions
            .iter()
            .position(|v| v.api_version == api_version)
    }

    /// The version of this name, of a resource.
    pub(crate) fn version_named(
        &self,
        resource: &GroupResource,
        name: &str,
    ) -> Option<VersionIndex> {
        self.versions
            .iter()
            .position(|v| v.def.version == name && v.resource == *resource)
    }

    /// The capacity for large documents of writes: that of all kinds, or its own.
    pub(crate) fn large_documents(&self, of_all: &LargeDocuments) -> LargeDocuments {
        match &self.conversion {
            KindConversion::Asynchronous(own) => own.writes.clone(),
            KindConversion::InMemory | KindConversion::Rename => of_all.clone(),
        }
    }

    /// Whether writes in all versions are validated and merged in the hub version.
    pub(crate) fn has_hub(&self) -> bool {
        matches!(self.conversion, KindConversion::InMemory)
    }

    /// Converts an object in memory, by way of the hub. For objects that may need asynchronous conversion, use
    /// [`Kind::object_in`].
    pub(crate) fn convert(
        &self,
        object: Object,
        from: VersionIndex,
        to: VersionIndex,
    ) -> Result<Object, ApiError> {
        self.try_convert(object, from, to)
            .map_err(ApiError::internal)
    }

    /// As [`Kind::convert`]; the error says why the object cannot be converted.
    fn try_convert(
        &self,
        object: Object,
        from: VersionIndex,
        to: VersionIndex,
    ) -> Result<Object, String> {
        if from == to {
            return Ok(object);
        }
        let (source, target) = (&self.versions[from], &self.versions[to]);
        let name = object.name().to_owned();
        let fail = |why: &str| {
            let (kind, source, target) = (
                &self.group_kind.kind,
                &source.api_version,
                &target.api_version,
            );
            format!(
                "converting {kind} {} from {source} to {target}: {why}",
                go_quote(&name)
            )
        };
        let mut object = object;
        object.fields_mut().remove("apiVersion");
        object.fields_mut().remove("kind");
        let mut value = object.into_value();
        if let Some(functions) = source.functions() {
            value = (functions.to_hub)(value).map_err(|why| fail(&why))?;
        }
        if let Some(functions) = target.functions() {
            value = (functions.from_hub)(value).map_err(|why| fail(&why))?;
        }
        let mut converted =
            Object::from_value(value).ok_or_else(|| fail("the result is not an object"))?;
        converted.set_type(&target.api_version, &target.def.kind);
        match self.conversion {
            KindConversion::InMemory => {}
            KindConversion::Rename => self.prune(&mut converted, to),
            // Callers that may have such a kind use `object_in`.
            KindConversion::Asynchronous(_) => return Err(fail("it is converted asynchronously")),
        }
        Ok(converted)
    }

    /// Removes what the schema of a version does not know from an object that was converted to it. It gets no defaults: those
    /// are of the version in which it was decoded.
    pub(crate) fn prune(&self, object: &mut Object, version: VersionIndex) {
        object.prune_by(self.versions[version].schema());
    }

    /// Applies the defaults of a version: the schema's, then the strategy's.
    pub(crate) fn default(&self, object: &mut Object, version: VersionIndex) {
        object.default_by(self.versions[version].schema());
        self.default_by_rules(object, version);
    }

    /// As [`Kind::default`], for an object that a client sent.
    ///
    /// # Errors
    /// RequestEntityTooLarge if the defaults of the schema add more than `max_bytes`.
    pub(crate) fn default_within(
        &self,
        object: &mut Object,
        version: VersionIndex,
        max_bytes: usize,
    ) -> Result<(), ApiError> {
        let schema = self.versions[version].schema();
        object
            .default_within(schema, max_bytes)
            .map_err(|error| ApiError::too_large(error.max_bytes))?;
        self.default_by_rules(object, version);
        Ok(())
    }

    /// The strategy for requests in a version: that of the version, else that of the hub, for kinds with a hub.
    pub(crate) fn strategy(
        &self,
        version: VersionIndex,
    ) -> Option<(VersionIndex, &dyn ErasedStrategy)> {
        let hub = self.has_hub().then_some(self.hub);
        [Some(version), hub]
            .into_iter()
            .flatten()
            .find_map(|v| Some((v, self.versions[v].strategy.as_deref()?)))
    }

    /// Whether a strategy applies defaults, by code, to objects of a version.
    pub(crate) fn has_defaults(&self, version: VersionIndex) -> bool {
        self.strategy(version)
            .is_some_and(|(_, strategy)| strategy.has_defaults())
    }

    /// Stored bytes as they are served, if a read would not change them. Defaults that are code are asked, if they are of the
    /// stored version.
    pub(crate) fn recognize(&self, stored: &Bytes) -> Option<PreparedObject> {
        let version = &self.versions[self.storage_version];
        let strategy = self.strategy(version.index);
        let defaults = strategy.filter(|(_, strategy)| strategy.has_defaults());
        if defaults.is_some_and(|(owner, _)| owner != version.index) {
            return None;
        }
        let json = match self.stored_json(stored).ok()? {
            Cow::Borrowed(_) => stored.clone(),
            Cow::Owned(json) => json.into(),
        };
        let known = PreparedObject::recognize(stored, json, version)?;
        defaults
            .is_none_or(|(_, strategy)| strategy.is_defaulted(&known.json, version.schema()))
            .then_some(known)
    }

    /// Applies the defaults of the strategy for a version.
    fn default_by_rules(&self, object: &mut Object, version: VersionIndex) {
        if self.has_defaults(version) {
            self.change(object, version, |strategy, object| strategy.default(object));
        }
    }

    /// Calls a hook that may change an object, in the version whose strategy applies; returns whether it changed
    /// something. An object that cannot be converted to that version is left unchanged here: the write converts it
    /// again and returns the error.
    pub(crate) fn change(
        &self,
        object: &mut Object,
        version: VersionIndex,
        hook: impl FnOnce(&dyn ErasedStrategy, &mut Object) -> bool,
    ) -> bool {
        let Some((owner, strategy)) = self.strategy(version) else {
            return false;
        };
        if owner == version {
            return hook(strategy, object);
        }
        let Ok(mut converted) = self.convert(object.clone(), version, owner) else {
            return false;
        };
        let before = converted.clone();
        hook(strategy, &mut converted)
            && self
                .apply_hook_changes(object, version, owner, [before, converted])
                .is_ok()
    }

    /// Applies to an object the changes that a hook made to it in another version, and only these.
    ///
    /// # Errors
    /// If the object cannot be converted back, before or after the changes.
    pub(crate) fn apply_hook_changes(
        &self,
        object: &mut Object,
        version: VersionIndex,
        other: VersionIndex,
        [before, after]: [Object; 2],
    ) -> Result<(), ApiError> {
        let before = self.convert(before, other, version)?;
        let mut after = self.convert(after, other, version)?;
        let schema = Some(self.versions[version].schema().as_ref());
        let after = std::mem::take(after.fields_mut());
        merge_difference(schema, object.fields_mut(), before.fields(), after);
        Ok(())
    }

    /// Converts an object and applies, for a kind with a hub, the defaults of the target version. Reads apply those of the
    /// storage version, so without this an unchanged object would be stored differently when a client writes it back.
    pub(crate) fn convert_with_defaults(
        &self,
        object: Object,
        from: VersionIndex,
        to: VersionIndex,
    ) -> Result<Object, ApiError> {
        self.try_convert_with_defaults(object, from, to)
            .map_err(ApiError::internal)
    }

    /// As [`Kind::convert_with_defaults`]; the error says why the object cannot be converted.
    pub(crate) fn try_convert_with_defaults(
        &self,
        object: Object,
        from: VersionIndex,
        to: VersionIndex,
    ) -> Result<Object, String> {
        let mut converted = self.try_convert(object, from, to)?;
        if from != to && self.has_hub() {
            self.default(&mut converted, to);
        }
        Ok(converted)
    }

    /// Decodes stored bytes: prunes and defaults them by the current schema of their version, then converts the object. That
    /// of a kind with a hub goes by way of the storage version, so that bytes that another program stored in another version
    /// read the same here as in the watch cache, which holds that. The resourceVersion is the revision.
    ///
    /// # Errors
    /// InternalError with the key if the bytes are not an object of this kind.
    pub(crate) fn read(
        &self,
        key: &str,
        bytes: &[u8],
        revision: Revision,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        let (object, stored) = self.decode(key, bytes, revision)?;
        if !self.has_hub() {
            return self.convert(object, stored, version);
        }
        let object = self.convert(object, stored, self.storage_version)?;
        self.convert(object, self.storage_version, version)
    }

    /// The JSON of a stored value, which may be Protobuf.
    ///
    /// # Errors
    /// If the value is malformed Protobuf, or Protobuf of another kind.
    pub(crate) fn stored_json<'s>(&self, stored: &'s [u8]) -> Result<Cow<'s, [u8]>, String> {
        stored_value::json(stored, |api_version, kind| self.message(api_version, kind))
    }

    /// A field that reads of a stored value drop, in words: `unknown field "spec.depth"`.
    ///
    /// # Errors
    /// If the value cannot be decoded.
    pub(crate) fn unknown_stored_field(
        &self,
        stored: &[u8],
        version: VersionIndex,
    ) -> Result<Option<String>, String> {
        let schema = self.versions[version].schema();
        stored_value::unknown_field(stored, schema, |api_version, kind| {
            self.message(api_version, kind)
        })
    }

    /// The Protobuf form of a version of the kind.
    fn message(&self, api_version: &str, kind: &str) -> Option<&'static ProtobufMessage> {
        let version = &self.versions[self.version_of(api_version)?];
        version.def.protobuf.filter(|_| version.def.kind == kind)
    }

    /// The message by which objects are stored as Protobuf; `None` if they are stored as JSON.
    fn stored_message(&self) -> Option<&'static ProtobufMessage> {
        match self.media_type {
            StorageMediaType::Json => None,
            StorageMediaType::Protobuf => self.stored_def().protobuf,
        }
    }

    /// Whether objects are stored as their JSON.
    pub(crate) fn stores_json(&self) -> bool {
        self.stored_message().is_none()
    }

    /// Decodes stored bytes in the version that they have; the resourceVersion is the revision.
    ///
    /// # Errors
    /// As [`Kind::read`].
    pub(crate) fn decode(
        &self,
        key: &str,
        bytes: &[u8],
        revision: Revision,
    ) -> Result<(Object, VersionIndex), ApiError> {
        // It is read in whole, or damage would be told where there is none.
        interrupt::apart(|| self.decode_whole(key, bytes, revision))
    }

    fn decode_whole(
        &self,
        key: &str,
        bytes: &[u8],
        revision: Revision,
    ) -> Result<(Object, VersionIndex), ApiError> {
        let damaged = |why: &str| {
            ApiError::internal(format!(
                "unable to decode the object stored at key {}: {why}",
                go_quote(key)
            ))
        };
        let json = self.stored_json(bytes).map_err(|why| damaged(&why))?;
        let value = Decoder::stored()
            .value(&json)
            .map_err(|error| damaged(&error.to_string()))?;
        let mut object =
            Object::from_value(value).ok_or_else(|| damaged("it is not a JSON object"))?;
        let stored = self
            .version_of(object.api_version())
            .filter(|&v| object.kind() == self.versions[v].def.kind)
            .ok_or_else(|| {
                damaged(&format!(
                    "it is a {} of {}",
                    go_quote(object.kind()),
                    go_quote(object.api_version())
                ))
            })?;
        if object.name().is_empty() {
            return Err(damaged("it has no name"));
        }
        self.prune(&mut object, stored);
        self.default(&mut object, stored);
        Encoder::of(self.versions[stored].schema()).pack_managed_fields(&mut object);
        object.set_meta_str("resourceVersion", &revision.to_string());
        Ok((object, stored))
    }

    /// Decodes an object of the watch cache, in a version.
    pub(crate) fn read_cached(
        &self,
        cached: &EncodedObject,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        let object = cached.json().object()?;
        let mut object = self.convert(object, cached.version_index(), version)?;
        object.set_meta_str("resourceVersion", &cached.revision().to_string());
        Ok(object)
    }

    /// Whether a read of a stored value of the storage version gives the object with this JSON, which has no
    /// resourceVersion.
    fn is_read_from(&self, stored: &[u8], json: &[u8]) -> bool {
        let Ok((mut object, version)) = self.decode("", stored, Revision(0)) else {
            return false;
        };
        object.set_meta_str("resourceVersion", "");
        version == self.storage_version
            && Encoder::of(self.versions[version].schema()).object(&object) == json
    }

    /// Encodes an object of the storage version for the store.
    pub(crate) fn encode(&self, object: &mut Object) -> Result<PreparedObject, ApiError> {
        let version = &self.versions[self.storage_version];
        if version.def.dialect.settles_numbers {
            object.settle_numbers();
        }
        PreparedObject::new(object, version, |json| {
            stored_value::encode(json, self.stored_message(), |stored| {
                self.is_read_from(stored, json)
            })
        })
    }

    /// Reads the stored value under a key; `operation` is for error messages.
    pub(crate) async fn get(&self, key: &str, operation: &str) -> Result<Option<Entry>, ApiError> {
        let (entry, _) = self
            .store
            .get(key)
            .await
            .map_err(|e| self.error(e, operation))?;
        Ok(entry)
    }

    /// The error of the API for a failed operation of the store.
    pub(crate) fn error(&self, error: StorageError, operation: &str) -> ApiError {
        from_storage(error, &self.resource, operation)
    }

    /// Records the revision of a write that is about to be acknowledged: listers show the write from now on.
    pub(crate) async fn acknowledge(&self, revision: Revision) {
        if let Some(listed) = self.listed.get() {
            listed.wait_for(revision).await;
        }
        self.newest_write.fetch_max(revision.0, Ordering::AcqRel);
    }
}
