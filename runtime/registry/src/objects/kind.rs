//! A kind: its versions and its store, and how its objects are decoded from and encoded for the store.
//!
//! `prepared_object.rs` recognizes stored bytes that need no decoding. Invariant: stored bytes are in the storage version,
//! without resourceVersion; every read prunes and defaults them by the current schema of the version that they have,
//! however old they are.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use apiloom_meta::codec::{Decoder, Encoder};
use apiloom_meta::field::go_quote;
use apiloom_meta::kind::{ProtobufMessage, Scope};
use apiloom_meta::{ApiError, GroupResource, Object, interrupt};
use apiloom_storage::{Entry, Revision, Storage, StorageError};
use bytes::Bytes;

use super::encryption::{PlainValue, ValueCipher};
use super::key::Keys;
use super::kind_version::VersionIndex;
use super::kind_versions::KindVersions;
use super::listed::ListedKind;
use super::prepared_object::{PendingWrites, PreparedObject};
use super::read_counts::ReadCounts;
use super::readers::Readers;
use super::stored_value::{self, StorageMediaType};
use crate::error::from_storage;

/// A kind in all its versions, with its store.
#[derive(Debug)]
pub struct Kind {
    pub(crate) versions: KindVersions,
    /// Whether the watch cache has, or had, objects of other versions than the storage version: they are converted
    /// by their readers.
    pub(crate) has_other_versions: AtomicBool,
    /// Group and resource of the hub.
    pub(crate) resource: GroupResource,
    pub(crate) scope: Scope,
    /// Whether this is a kind of the server itself: Namespace, or a built-in kind that its builder was asked for.
    pub(crate) is_own: bool,
    /// Whether the definition of a custom resource is being deleted: no objects are created any more. Shared by all kinds that
    /// are made of the same definition, so that a request that began with an earlier one sees it too.
    pub(crate) is_terminating: Arc<AtomicBool>,
    pub store: Arc<dyn Storage>,
    /// The keys of its objects in the store.
    pub(crate) keys: Keys,
    /// Encrypts and decrypts its stored values.
    pub(crate) cipher: Arc<dyn ValueCipher>,
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
    /// Encodings of writes in flight, for the watch cache.
    pub(crate) pending_writes: PendingWrites,
    /// Lists and initial events that are being sent.
    pub(crate) readers: Readers,
}

impl Kind {
    /// Whether objects are kept in a store.
    pub(crate) fn has_store(&self) -> bool {
        self.versions.stored_version().def.has_store
    }

    /// The uid of the definition of a custom resource that a client made.
    fn definition_uid(&self) -> Option<&str> {
        let custom = self.versions.stored_version().def.custom.as_ref()?;
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

    /// Decrypts the bytes that are stored under a key.
    ///
    /// # Errors
    /// InternalError with the key if that is not possible.
    pub(crate) fn open<'s>(&self, key: &str, stored: &'s [u8]) -> Result<PlainValue<'s>, ApiError> {
        let opened = self.cipher.decrypt(key, stored);
        opened.map_err(|why| ApiError::internal(untransformed(key, &why)))
    }

    /// Encrypts the bytes to store under a key.
    ///
    /// # Errors
    /// Refused if that is not possible.
    pub(crate) fn seal(&self, key: &str, plain: &Bytes) -> Result<Bytes, StorageError> {
        let sealed = self.cipher.encrypt(key, plain);
        sealed.map_err(|why| StorageError::Refused(untransformed(key, &why)))
    }

    /// Whether a write of this object would not change what is stored: neither the object nor how it is encrypted.
    pub(crate) fn is_stored_as(&self, entry: &Entry, prepared: &PreparedObject) -> bool {
        let opened = self.cipher.decrypt(&entry.key, &entry.value);
        opened.is_ok_and(|plain| !plain.is_stale && *plain.bytes == *prepared.stored)
    }

    /// Length of a stored object as JSON, in bytes; `None` if the value cannot be read.
    pub(crate) fn json_len(&self, entry: &Entry) -> Option<usize> {
        let plain = self.open(&entry.key, &entry.value).ok()?;
        let json = self.stored_json(&plain.bytes).ok()?;
        Some(json.len())
    }

    /// A plain stored value as it is served, if a read would not change it. Defaults that are code are asked, if they are of the
    /// stored version.
    pub(crate) fn recognize(&self, stored: &Bytes) -> Option<PreparedObject> {
        let version = self.versions.stored_version();
        let strategy = self.versions.strategy(version.index);
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

    /// Decodes stored bytes: prunes and defaults them by the current schema of their version, then converts the object. That
    /// of a kind with a hub goes by way of the storage version, so that bytes that another program stored in another version
    /// read the same here as in the watch cache, which holds that. The resourceVersion is the revision.
    ///
    /// # Errors
    /// InternalError with the key if the bytes cannot be decrypted, or are not an object of this kind.
    pub(crate) fn read(
        &self,
        key: &str,
        bytes: &[u8],
        revision: Revision,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        let plain = self.open(key, bytes)?;
        self.read_plain(key, &plain.bytes, revision, version)
    }

    /// As [`Kind::read`], of a value that is not encrypted.
    pub(crate) fn read_plain(
        &self,
        key: &str,
        plain: &[u8],
        revision: Revision,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        let (object, stored) = self.decode_plain(key, plain, revision)?;
        if !self.versions.has_hub() {
            return self.versions.convert(object, stored, version);
        }
        let object = self
            .versions
            .convert(object, stored, self.versions.stored)?;
        self.versions.convert(object, self.versions.stored, version)
    }

    /// The JSON of a plain stored value, which may be Protobuf.
    ///
    /// # Errors
    /// If the value is malformed Protobuf, or Protobuf of another kind.
    fn stored_json<'s>(&self, stored: &'s [u8]) -> Result<Cow<'s, [u8]>, String> {
        stored_value::json(stored, |api_version, kind| self.message(api_version, kind))
    }

    /// A field that reads of a stored value drop, in words: `unknown field "spec.depth"`.
    ///
    /// # Errors
    /// InternalError if the value cannot be decrypted or decoded.
    pub(crate) fn unknown_stored_field(
        &self,
        entry: &Entry,
        version: VersionIndex,
    ) -> Result<Option<String>, ApiError> {
        let plain = self.open(&entry.key, &entry.value)?;
        let schema = self.versions[version].schema();
        let unknown = stored_value::unknown_field(&plain.bytes, schema, |api_version, kind| {
            self.message(api_version, kind)
        });
        unknown.map_err(ApiError::internal)
    }

    /// The Protobuf form of a version of the kind.
    fn message(&self, api_version: &str, kind: &str) -> Option<&'static ProtobufMessage> {
        let version = &self.versions[self.versions.find(api_version)?];
        version.def.protobuf.filter(|_| version.def.kind == kind)
    }

    /// The message by which objects are stored as Protobuf; `None` if they are stored as JSON.
    fn stored_message(&self) -> Option<&'static ProtobufMessage> {
        match self.media_type {
            StorageMediaType::Json => None,
            StorageMediaType::Protobuf => self.versions.stored_version().def.protobuf,
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
        let plain = self.open(key, bytes)?;
        self.decode_plain(key, &plain.bytes, revision)
    }

    /// As [`Kind::decode`], of a value that is not encrypted.
    pub(crate) fn decode_plain(
        &self,
        key: &str,
        plain: &[u8],
        revision: Revision,
    ) -> Result<(Object, VersionIndex), ApiError> {
        // It is read in whole, or damage would be told where there is none.
        interrupt::apart(|| self.decode_whole(key, plain, revision))
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
            .versions
            .find(object.api_version())
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
        self.versions.prune(&mut object, stored);
        self.versions.default(&mut object, stored);
        Encoder::of(self.versions[stored].schema()).pack_managed_fields(&mut object);
        object.set_meta_str("resourceVersion", &revision.to_string());
        Ok((object, stored))
    }

    /// Whether a read of a plain value of the storage version gives the object with this JSON, which has no
    /// resourceVersion.
    fn is_read_from(&self, stored: &[u8], json: &[u8]) -> bool {
        let Ok((mut object, version)) = self.decode_plain("", stored, Revision(0)) else {
            return false;
        };
        object.set_meta_str("resourceVersion", "");
        version == self.versions.stored
            && Encoder::of(self.versions[version].schema()).object(&object) == json
    }

    /// Encodes an object of the storage version for the store.
    pub(crate) fn encode(&self, object: &mut Object) -> Result<PreparedObject, ApiError> {
        let version = self.versions.stored_version();
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

/// Why a value cannot be encrypted or decrypted, in the words of kube-apiserver.
fn untransformed(key: &str, why: &str) -> String {
    format!("unable to transform key {}: {why}", go_quote(key))
}
