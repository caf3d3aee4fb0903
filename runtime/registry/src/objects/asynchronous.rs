//! Conversion of objects that may be asynchronous. For kinds that convert in memory nothing here awaits.
//!
//! Objects that are asked for together are one call of the converter, those in the target version left out.

use std::sync::Arc;

use apiloom_meta::{ApiError, Object};
use apiloom_storage::cache::Item;
use apiloom_storage::{Entry, Revision};

use super::cached_object::{CachedObject, object};
use super::converter_call::ConverterCall;
use super::document::EncodedObject;
use super::json::Json;
use super::kind::Kind;
use super::kind_version::VersionIndex;
use super::kind_versions::{AsynchronousConversion, KindConversion, KindVersions};
use super::present_object::PresentObject;

impl KindVersions {
    fn converter(&self) -> Option<&AsynchronousConversion> {
        match &self.conversion {
            KindConversion::Asynchronous(conversion) => Some(conversion),
            KindConversion::InMemory | KindConversion::Rename => None,
        }
    }

    /// Whether objects are converted asynchronously to other versions than the stored one.
    pub(crate) fn is_asynchronous(&self) -> bool {
        self.converter().is_some()
    }

    /// Converts an object to another version.
    ///
    /// # Errors
    /// The error of the conversion.
    pub(crate) async fn object_in(
        &self,
        object: Object,
        from: VersionIndex,
        to: VersionIndex,
    ) -> Result<Object, ApiError> {
        let Some(converter) = self.converter().filter(|_| from != to) else {
            return self.convert(object, from, to);
        };
        let call = self.call(converter, &object, [from, to]).await?;
        result_of(call, object).await
    }

    /// As [`Self::object_in`]; of a kind without a hub, fields that the other version does not know are kept.
    ///
    /// # Errors
    /// The error of the conversion.
    pub(crate) async fn unpruned_in(
        &self,
        mut object: Object,
        from: VersionIndex,
        to: VersionIndex,
    ) -> Result<Object, ApiError> {
        match &self.conversion {
            _ if from == to => Ok(object),
            KindConversion::InMemory => self.convert(object, from, to),
            KindConversion::Rename => {
                let target = &self[to];
                object.set_type(&target.api_version, &target.def.kind);
                Ok(object)
            }
            KindConversion::Asynchronous(converter) => {
                let call = self.call(converter, &object, [from, to]).await?;
                result_of(call.without_pruning(), object).await
            }
        }
    }

    /// Calls the converter for one object.
    async fn call<'k>(
        &'k self,
        converter: &'k AsynchronousConversion,
        object: &Object,
        [from, to]: [VersionIndex; 2],
    ) -> Result<ConverterCall<'k>, ApiError> {
        let document = Json::of(object, self[from].schema()).into_whole();
        ConverterCall::begin(self, converter, [from, to], vec![document.into()]).await
    }

    /// Converts an object of a kind without a hub to the storage version, as it is stored: with the defaults of that version,
    /// which every read of it would apply.
    ///
    /// # Errors
    /// The error of the conversion.
    pub(crate) async fn stored_object(
        &self,
        object: Object,
        from: VersionIndex,
    ) -> Result<Object, ApiError> {
        let stored = self.stored;
        let mut object = self.object_in(object, from, stored).await?;
        if from != stored {
            self.default(&mut object, stored);
        }
        Ok(object)
    }

    /// Converts objects of the cache to a version; those of other versions are converted in one batch.
    ///
    /// # Errors
    /// The error of the conversion; InternalError for stored values that cannot be decoded.
    pub(crate) async fn items_in(
        &self,
        items: &[Arc<Item<CachedObject>>],
        version: VersionIndex,
    ) -> Result<Vec<Arc<Item<CachedObject>>>, ApiError> {
        let Some(converter) = self.converter() else {
            return items
                .iter()
                .map(|item| self.converted(item, version))
                .collect();
        };
        let (mut first, mut documents) = (None, Vec::new());
        for item in items {
            let held = object(item)?.version_index();
            if held != version {
                tokio::task::coop::consume_budget().await;
                first.get_or_insert(held);
                documents.push(EncodedObject::new(item, None)?.shared());
            }
        }
        let Some(first) = first else {
            return Ok(items.to_vec());
        };
        let mut call = ConverterCall::begin(self, converter, [first, version], documents).await?;
        let target = &self[version];
        let mut found = Vec::with_capacity(items.len());
        for item in items {
            if object(item)?.version_index() == version {
                found.push(Arc::clone(item));
                continue;
            }
            // One after the other: documents in memory are many times as large as their text.
            let original = EncodedObject::new(item, None)?.json().object()?;
            let converted = call.next(original).await?;
            let json = Json::of(&converted, target.schema());
            let object = CachedObject::new(&json, target).map_err(ApiError::internal)?;
            found.push(Arc::new(Item {
                key: Arc::clone(&item.key),
                revision: item.revision,
                object: Ok(object),
            }));
        }
        call.accept();
        Ok(found)
    }

    /// Converts an object of the cache to a version; watchers share the result.
    ///
    /// # Errors
    /// As [`Self::items_in`].
    pub(crate) async fn item_in(
        &self,
        item: &Arc<Item<CachedObject>>,
        version: VersionIndex,
    ) -> Result<Arc<Item<CachedObject>>, ApiError> {
        if object(item)?.version_index() == version {
            return Ok(Arc::clone(item));
        }
        let convert = async {
            let converted = self.items_in(std::slice::from_ref(item), version).await?;
            let converted = converted.into_iter().next();
            converted.ok_or_else(|| ApiError::internal("a conversion without a result"))
        };
        // The state of a conversion is large, and there is a future of this function for each watch.
        match self.recent.get(version) {
            Some(recent) => Box::pin(recent.get_or_await(item, convert)).await,
            None => Box::pin(convert).await,
        }
    }
}

impl Kind {
    /// Decodes stored bytes in a version, as [`Self::read`] does.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) async fn read_in(
        &self,
        key: &str,
        bytes: &[u8],
        revision: Revision,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        let plain = self.open(key, bytes)?;
        self.read_plain_in(key, &plain.bytes, revision, version)
            .await
    }

    /// As [`Self::read_in`], of a value that is not encrypted.
    pub(crate) async fn read_plain_in(
        &self,
        key: &str,
        plain: &[u8],
        revision: Revision,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        if self.versions.converter().is_none() {
            return self.read_plain(key, plain, revision, version);
        }
        let (object, stored) = self.decode_plain(key, plain, revision)?;
        // The state of a conversion is large, and there is a future of this function for each watch.
        Box::pin(self.versions.object_in(object, stored, version)).await
    }

    /// Decodes a stored entry in a version.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) async fn entry_in(
        &self,
        entry: &Entry,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        self.read_in(&entry.key, &entry.value, entry.revision, version)
            .await
    }

    /// Decodes stored entries in a version; they are converted in one batch.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) async fn entries_in(
        &self,
        entries: &[Entry],
        version: VersionIndex,
    ) -> Result<Vec<Object>, ApiError> {
        let Some(converter) = self.versions.converter() else {
            return entries
                .iter()
                .map(|entry| self.read(&entry.key, &entry.value, entry.revision, version))
                .collect();
        };
        let mut objects = Vec::with_capacity(entries.len());
        let (mut first, mut documents) = (None, Vec::new());
        for entry in entries {
            tokio::task::coop::consume_budget().await;
            let (object, from) = self.decode(&entry.key, &entry.value, entry.revision)?;
            if from != version {
                first.get_or_insert(from);
                let document = Json::of(&object, self.versions[from].schema()).into_whole();
                documents.push(document.into());
            }
            objects.push((object, from));
        }
        let Some(first) = first else {
            return Ok(objects.into_iter().map(|(object, _)| object).collect());
        };
        let mut call =
            ConverterCall::begin(&self.versions, converter, [first, version], documents).await?;
        let mut found = Vec::with_capacity(objects.len());
        for (object, from) in objects {
            found.push(if from == version {
                object
            } else {
                call.next(object).await?
            });
        }
        call.accept();
        Ok(found)
    }

    /// Decodes the current object of a write in a version.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) async fn present_in(
        &self,
        present: &PresentObject,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        let cached = match present {
            PresentObject::Stored(entry) => return self.entry_in(entry, version).await,
            PresentObject::Cached(cached) if self.versions.converter().is_none() => {
                return self.versions.read_cached(cached, version);
            }
            PresentObject::Cached(cached) => cached,
        };
        let mut object = cached.json().object()?;
        object.set_meta_str("resourceVersion", &cached.revision().to_string());
        self.versions
            .object_in(object, cached.version_index(), version)
            .await
    }
}

/// The result of a call for one object.
async fn result_of(mut call: ConverterCall<'_>, object: Object) -> Result<Object, ApiError> {
    let converted = call.next(object).await?;
    call.accept();
    Ok(converted)
}
