//! What the registry knows of a kind in all its versions: schemas, conversion, hooks, and where its objects are stored.
//!
//! Documents enter and leave the store here, and by way of `prepared.rs`, which recognizes those that a read would not
//! change. The invariant: stored bytes hold the storage version without resourceVersion; what is read is pruned and
//! defaulted by today's schema, whenever it was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use apiloom_meta::codec::{Format, decode_value};
use apiloom_meta::field::go_quote;
use apiloom_meta::kind::{Converter, Scope};
use apiloom_meta::schema::merge_difference;
use apiloom_meta::{ApiError, GroupKind, GroupResource, Object, ResourceDef};
use apiloom_storage::{Entry, Revision, Storage, StorageError};
use bytes::Bytes;
use serde_json::Value;

use super::document::Encoded;
use super::key::check_segment;
use super::kind_version::{KindVersion, VersionIndex};
use super::prepared::{Handed, Prepared};
use super::read_counts::ReadCounts;
use super::readers::Readers;
use super::recent_conversions::RecentConversions;
use crate::registry::error::from_storage;
use crate::registry::rules::strategy::ErasedStrategy;

/// A kind in all its versions, over the store.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) versions: Vec<KindVersion>,
    pub(crate) hub: VersionIndex,
    /// How objects become those of another version.
    pub(crate) conversion: KindConversion,
    /// Whether the watch cache has, or had, objects that are not in the storage version: asynchronous conversion is left to
    /// their readers.
    pub(crate) holds_others: AtomicBool,
    pub(crate) storage_version: VersionIndex,
    pub(crate) resource: GroupResource,
    pub(crate) group_kind: GroupKind,
    pub(crate) scope: Scope,
    /// Whether every server serves it.
    pub(crate) is_own: bool,
    pub(crate) store: Arc<dyn Storage>,
    /// What the keys of every kind begin with.
    pub(crate) key_prefix: String,
    /// The newest revision that a write of this kind was acknowledged with, for listers to wait for.
    pub(crate) newest_write: AtomicU64,
    /// What was read from where, for metrics.
    pub(crate) reads: ReadCounts,
    /// What watchers were sent lately in each version, converted once for all of them.
    pub(crate) converted: Vec<RecentConversions>,
    /// What is being written, for the watch cache.
    pub(crate) handed: Handed,
    /// The lists and initial events that are being sent.
    pub(crate) readers: Readers,
}

/// How objects of a kind become those of another version.
#[derive(Debug)]
pub(crate) enum KindConversion {
    /// By way of the hub, as each version's definition says.
    InMemory,
    /// By another `apiVersion`.
    Rename,
    /// By a converter that is awaited.
    Asynchronous(Arc<dyn Converter>),
}

/// What most keys have room in.
const KEY_BYTES: usize = 128;

impl Kind {
    /// Whether objects are kept in the store.
    pub(crate) fn has_store(&self) -> bool {
        self.stored_def().has_store
    }

    /// What the kind declares in the version that is stored.
    pub(crate) fn stored_def(&self) -> &ResourceDef {
        &self.versions[self.storage_version].def
    }

    /// The prefix below which objects of a namespace, or all of them, are stored; ends in `/`.
    pub(crate) fn prefix(&self, namespace: Option<&str>) -> String {
        let GroupResource { group, resource } = &self.resource;
        // Made for every request, so without the machinery of formats.
        let mut prefix = String::with_capacity(KEY_BYTES);
        // The core group has no name, and no part of the key.
        let group = Some(group.as_str()).filter(|group| !group.is_empty());
        let namespace = namespace.filter(|_| self.scope == Scope::Namespaced);
        let parts = [
            Some(self.key_prefix.as_str()),
            group,
            Some(resource),
            namespace,
        ];
        for part in parts.into_iter().flatten() {
            prefix.push_str(part);
            prefix.push('/');
        }
        prefix
    }

    /// The key of an object.
    ///
    /// # Errors
    /// BadRequest when the name or the namespace cannot be a part of a key.
    pub(crate) fn key(&self, namespace: Option<&str>, name: &str) -> Result<String, ApiError> {
        if self.scope == Scope::Namespaced {
            check_segment("Namespace", namespace.unwrap_or_default())?;
        }
        check_segment("Name", name)?;
        let mut key = self.prefix(namespace);
        key.push_str(name);
        Ok(key)
    }

    /// The version that an `apiVersion` names.
    pub(crate) fn version_of(&self, api_version: &str) -> Option<VersionIndex> {
        self.versions
            .iter()
            .position(|v| v.api_version == api_version)
    }

    /// Whether writes in any version are judged and merged as the hub has them.
    pub(crate) fn has_hub(&self) -> bool {
        matches!(self.conversion, KindConversion::InMemory)
    }

    /// Carries an object from one version to another at once, by way of the hub. Objects that may have to be converted
    /// asynchronously go by way of [`Kind::object_in`].
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
            KindConversion::Rename => self.complete(&mut converted, to),
            // Callers that may have such a kind ask for `object_in`.
            KindConversion::Asynchronous(_) => return Err(fail("it is converted asynchronously")),
        }
        Ok(converted)
    }

    /// Prunes and defaults an object that came from another version by the schema of this one.
    pub(crate) fn complete(&self, object: &mut Object, version: VersionIndex) {
        let schema = self.versions[version].schema();
        Self::with_value(object, |value| schema.prune(value));
        self.default(object, version);
    }

    /// Runs a schema function over an object.
    pub(crate) fn with_value<T>(object: &mut Object, run: impl FnOnce(&mut Value) -> T) -> T {
        let mut value = std::mem::take(object).into_value();
        let result = run(&mut value);
        *object = Object::from_value(value).unwrap_or_default();
        result
    }

    /// Puts in the defaults of a version: the schema's, then the strategy's.
    pub(crate) fn default(&self, object: &mut Object, version: VersionIndex) {
        let schema = self.versions[version].schema();
        Self::with_value(object, |value| schema.default(value));
        self.default_by_rules(object, version);
    }

    /// As [`Kind::default`], of an object that a client sent.
    ///
    /// # Errors
    /// RequestEntityTooLarge when the schema's defaults have more than so many bytes.
    pub(crate) fn default_within(
        &self,
        object: &mut Object,
        version: VersionIndex,
        max_bytes: usize,
    ) -> Result<(), ApiError> {
        let schema = self.versions[version].schema();
        if !Self::with_value(object, |value| schema.default_within(value, max_bytes)) {
            return Err(ApiError::too_large(max_bytes));
        }
        self.default_by_rules(object, version);
        Ok(())
    }

    /// The rules for requests in a version: its own, else the hub's, if the kind has one that judges.
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

    /// Whether code puts defaults into objects of a version.
    pub(crate) fn has_defaults(&self, version: VersionIndex) -> bool {
        self.strategy(version)
            .is_some_and(|(_, strategy)| strategy.has_defaults())
    }

    /// Stored bytes as they are served, if that needs no decoding. Defaults that are code need it: they take objects.
    pub(crate) fn recognize(&self, stored: &Bytes) -> Option<Prepared> {
        let version = self.storage_version;
        if self.has_defaults(version) {
            return None;
        }
        Prepared::recognize(stored, &self.versions[version])
    }

    /// Puts in the defaults of the rules for a version.
    fn default_by_rules(&self, object: &mut Object, version: VersionIndex) {
        if self.has_defaults(version) {
            self.change(object, version, |strategy, object| strategy.default(object));
        }
    }

    /// Runs a hook that may change an object, in the version whose rules apply; says whether it did. An object that
    /// cannot be converted there is left alone: writing it, which converts it too, says why.
    pub(crate) fn change(
        &self,
        object: &mut Object,
        version: VersionIndex,
        hook: impl FnOnce(&dyn ErasedStrategy, &mut Object) -> bool,
    ) -> bool {
        let Some((judge, strategy)) = self.strategy(version) else {
            return false;
        };
        if judge == version {
            return hook(strategy, object);
        }
        let Ok(mut converted) = self.convert(object.clone(), version, judge) else {
            return false;
        };
        let before = converted.clone();
        hook(strategy, &mut converted)
            && self
                .put_back(object, version, judge, [before, converted])
                .is_ok()
    }

    /// Makes in an object what a hook changed in it in another version, and nothing else.
    ///
    /// # Errors
    /// When one of the two states of the object in that version cannot be converted.
    pub(crate) fn put_back(
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

    /// The object in another version, with that version's defaults: a read puts in those of the version that is stored, and
    /// what a read gave must be stored as it was when it is written back.
    pub(crate) fn carry(
        &self,
        object: Object,
        from: VersionIndex,
        to: VersionIndex,
    ) -> Result<Object, ApiError> {
        self.try_carry(object, from, to).map_err(ApiError::internal)
    }

    /// As [`Kind::carry`]; the error says why the object cannot be converted.
    pub(crate) fn try_carry(
        &self,
        object: Object,
        from: VersionIndex,
        to: VersionIndex,
    ) -> Result<Object, String> {
        let mut carried = self.try_convert(object, from, to)?;
        if from != to && self.has_hub() {
            self.default(&mut carried, to);
        }
        Ok(carried)
    }

    /// Reads stored bytes in a version: pruned and defaulted by today's schema of the version they are stored in, then
    /// converted, by way of the storage version. What another tool stored in another version reads so as it does from the
    /// watch cache, which holds the storage version. The resourceVersion is the revision.
    ///
    /// # Errors
    /// InternalError, naming the key, for bytes that are no object of this kind.
    pub(crate) fn read(
        &self,
        key: &str,
        bytes: &[u8],
        revision: Revision,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        let (object, stored) = self.decode(key, bytes, revision)?;
        let object = self.convert(object, stored, self.storage_version)?;
        self.convert(object, self.storage_version, version)
    }

    /// Reads stored bytes in the version that they are stored in, with the resourceVersion that is the revision.
    ///
    /// # Errors
    /// As [`Kind::read`].
    pub(crate) fn decode(
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
        let value =
            decode_value(bytes, Format::Json).map_err(|error| damaged(&error.to_string()))?;
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
        Self::with_value(&mut object, |value| {
            self.versions[stored].schema().prune(value);
        });
        self.default(&mut object, stored);
        object.set_meta_str("resourceVersion", &revision.to_string());
        Ok((object, stored))
    }

    /// An object of the watch cache, in a version.
    pub(crate) fn read_cached(
        &self,
        cached: &Encoded,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        let object = cached.json().object()?;
        let mut object = self.convert(object, self.storage_version, version)?;
        object.set_meta_str("resourceVersion", &cached.revision().to_string());
        Ok(object)
    }

    /// An object of the storage version as it will be stored.
    pub(crate) fn encode(&self, object: &mut Object) -> Result<Prepared, ApiError> {
        Prepared::new(object, &self.versions[self.storage_version])
    }

    /// What is stored under a key.
    pub(crate) async fn get(&self, key: &str, operation: &str) -> Result<Option<Entry>, ApiError> {
        let (entry, _) = self
            .store
            .get(key)
            .await
            .map_err(|e| self.error(e, operation))?;
        Ok(entry)
    }

    /// The API's error for a failed operation of the store on this kind.
    pub(crate) fn error(&self, error: StorageError, operation: &str) -> ApiError {
        from_storage(error, &self.resource, operation)
    }

    /// Writes where nothing is.
    pub(crate) async fn store_create(
        &self,
        key: &str,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        self.acknowledge(self.store.create(key, value, None).await)
    }

    /// Overwrites what was written at a revision.
    pub(crate) async fn store_update(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        self.acknowledge(self.store.update_if(key, expected, value, None).await)
    }

    /// Removes what was written at a revision.
    pub(crate) async fn store_delete(
        &self,
        key: &str,
        expected: Revision,
    ) -> Result<Revision, StorageError> {
        self.acknowledge(self.store.delete_if(key, expected).await)
    }

    fn acknowledge(
        &self,
        written: Result<Revision, StorageError>,
    ) -> Result<Revision, StorageError> {
        if let Ok(revision) = &written {
            self.newest_write.fetch_max(revision.0, Ordering::AcqRel);
        }
        written
    }
}
