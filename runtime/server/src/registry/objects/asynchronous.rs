//! Conversion of objects that may be asynchronous. For kinds that convert in memory nothing here awaits.
//!
//! The results of a converter are checked as kube-apiserver checks the response of a conversion webhook, with the same
//! error texts.

use std::sync::Arc;

use apiloom_meta::codec::{Format, decode_value};
use apiloom_meta::kind::Converter;
use apiloom_meta::{ApiError, FieldPath, Object, validation};
use apiloom_storage::cache::Item;
use apiloom_storage::{Entry, Revision};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::cached_object::{CachedObject, object};
use super::document::EncodedObject;
use super::json::Json;
use super::kind::{Kind, KindConversion};
use super::kind_version::VersionIndex;
use super::present_object::PresentObject;

/// The parts of the metadata that a converter may change.
const CHANGEABLE: [&str; 2] = ["labels", "annotations"];

/// An object to convert, with its current version.
struct ConversionInput {
    document: Bytes,
    object: Object,
    from: VersionIndex,
}

impl Kind {
    fn converter(&self) -> Option<&dyn Converter> {
        match &self.conversion {
            KindConversion::Asynchronous(converter) => Some(&**converter),
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
        let document = Json::of(&object, self.versions[from].schema()).into_whole();
        let source = ConversionInput {
            document: document.into(),
            object,
            from,
        };
        let mut converted = self.convert_all(converter, vec![source], to).await?;
        converted
            .pop()
            .ok_or_else(|| ApiError::internal("a conversion without a result"))
    }

    /// Decodes stored bytes in a version, as [`Kind::read`] does.
    ///
    /// # Errors
    /// As [`Kind::read`].
    pub(crate) async fn read_in(
        &self,
        key: &str,
        bytes: &[u8],
        revision: Revision,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        if self.converter().is_none() {
            return self.read(key, bytes, revision, version);
        }
        let (object, stored) = self.decode(key, bytes, revision)?;
        self.object_in(object, stored, version).await
    }

    /// Decodes a stored entry in a version.
    ///
    /// # Errors
    /// As [`Kind::read`].
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
    /// As [`Kind::read`].
    pub(crate) async fn entries_in(
        &self,
        entries: &[Entry],
        version: VersionIndex,
    ) -> Result<Vec<Object>, ApiError> {
        let Some(converter) = self.converter() else {
            return entries
                .iter()
                .map(|entry| self.read(&entry.key, &entry.value, entry.revision, version))
                .collect();
        };
        let mut objects = Vec::with_capacity(entries.len());
        let mut sources = Vec::new();
        for entry in entries {
            tokio::task::coop::consume_budget().await;
            let (object, from) = self.decode(&entry.key, &entry.value, entry.revision)?;
            if from == version {
                objects.push(Some(object));
                continue;
            }
            let document = Json::of(&object, self.versions[from].schema()).into_whole();
            sources.push(ConversionInput {
                document: document.into(),
                object,
                from,
            });
            objects.push(None);
        }
        let converted = self.convert_all(converter, sources, version).await?;
        let mut converted = converted.into_iter();
        let objects = objects.into_iter();
        Ok(objects
            .filter_map(|object| object.or_else(|| converted.next()))
            .collect())
    }

    /// Decodes the current object of a write in a version.
    ///
    /// # Errors
    /// As [`Kind::read`].
    pub(crate) async fn present_in(
        &self,
        present: &PresentObject,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        let cached = match present {
            PresentObject::Stored(entry) => return self.entry_in(entry, version).await,
            PresentObject::Cached(cached) if self.converter().is_none() => {
                return self.read_cached(cached, version);
            }
            PresentObject::Cached(cached) => cached,
        };
        let mut object = cached.json().object()?;
        object.set_meta_str("resourceVersion", &cached.revision().to_string());
        self.object_in(object, cached.version_index(), version)
            .await
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
        let mut sources = Vec::new();
        for item in items {
            let held = object(item)?.version_index();
            if held != version {
                tokio::task::coop::consume_budget().await;
                let cached = EncodedObject::new(item, None)?;
                sources.push(ConversionInput {
                    document: cached.shared(),
                    object: cached.json().object()?,
                    from: held,
                });
            }
        }
        let mut converted = self
            .convert_all(converter, sources, version)
            .await?
            .into_iter();
        let target = &self.versions[version];
        let mut found = Vec::with_capacity(items.len());
        for item in items {
            if object(item)?.version_index() == version {
                found.push(Arc::clone(item));
            } else if let Some(converted) = converted.next() {
                let json = Json::of(&converted, target.schema());
                let object = CachedObject::new(&json, target).map_err(ApiError::internal)?;
                found.push(Arc::new(Item {
                    key: Arc::clone(&item.key),
                    revision: item.revision,
                    object: Ok(object),
                }));
            }
        }
        Ok(found)
    }

    /// Converts an object of the cache to a version; watchers share the result.
    ///
    /// # Errors
    /// As [`Kind::items_in`].
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
        match self.converted.get(version) {
            Some(recent) => recent.get_or_await(item, convert).await,
            None => convert.await,
        }
    }

    /// Converts objects in one call of the converter; none of them may be in the target version already.
    async fn convert_all(
        &self,
        converter: &dyn Converter,
        sources: Vec<ConversionInput>,
        to: VersionIndex,
    ) -> Result<Vec<Object>, ApiError> {
        let Some(first) = sources.first() else {
            return Ok(Vec::new());
        };
        let kind = &self.group_kind.kind;
        let source = &self.versions[first.from].api_version;
        let error = |why: String| {
            ApiError::internal_text(format!(
                "conversion webhook for {source}, Kind={kind} {why}"
            ))
        };
        let target = self.versions[to].def.group_version();
        let documents: Vec<Bytes> = sources.iter().map(|from| from.document.clone()).collect();
        let converted = converter.convert(documents, &target).await;
        let converted = converted.map_err(|why| error(format!("failed: {why}")))?;
        if converted.len() != sources.len() {
            return Err(error(format!(
                "returned {} objects, expected {}",
                converted.len(),
                sources.len()
            )));
        }
        let mut objects = Vec::with_capacity(sources.len());
        for (index, (source, document)) in sources.into_iter().zip(converted).enumerate() {
            tokio::task::coop::consume_budget().await;
            let object = self.check_converted(source.object, &document, to);
            objects.push(object.map_err(|(what, why)| {
                error(format!("returned invalid {what} at index {index}: {why}"))
            })?);
        }
        Ok(objects)
    }

    /// Decodes a converted document and checks that it is the same object in the target version. Its metadata is that
    /// of the original, except for labels and annotations, which a converter may change.
    fn check_converted(
        &self,
        original: Object,
        document: &[u8],
        to: VersionIndex,
    ) -> Result<Object, (&'static str, String)> {
        let of_object = |why: String| ("converted object", why);
        let value = decode_value(document, Format::Json).map_err(|e| of_object(e.to_string()))?;
        let mut object = Object::from_value(value)
            .ok_or_else(|| of_object("it is not a JSON object".to_owned()))?;
        let target = &self.versions[to];
        if object.api_version() != target.api_version {
            return Err(of_object(format!(
                "invalid groupVersion (expected {}, received {})",
                target.api_version,
                object.api_version()
            )));
        }
        let [old, new] = [&original, &object];
        for (what, old, new) in [
            ("kind", old.kind(), new.kind()),
            ("name", old.name(), new.name()),
            ("namespace", old.namespace(), new.namespace()),
            ("UID", old.uid(), new.uid()),
        ] {
            if old != new {
                return Err(of_object(format!(
                    "must have the same {what}: {old} != {new}"
                )));
            }
        }
        let metadata =
            merge_metadata(original, &object).map_err(|why| ("metadata in object", why))?;
        *object.meta_mut() = metadata;
        self.complete(&mut object, to);
        Ok(object)
    }
}

/// The metadata of the original object, with the labels and annotations of the converted one.
fn merge_metadata(mut original: Object, converted: &Object) -> Result<Map<String, Value>, String> {
    let mut metadata = std::mem::take(original.meta_mut());
    let given = converted
        .fields()
        .get("metadata")
        .and_then(Value::as_object);
    for field in CHANGEABLE {
        let values = match given.and_then(|given| given.get(field)) {
            None | Some(Value::Null) => {
                metadata.remove(field);
                continue;
            }
            Some(Value::Object(values)) => values,
            Some(_) => return Err(format!("invalid metadata.{field} in converted object")),
        };
        if values.values().any(|value| !value.is_string()) {
            return Err(format!("metadata.{field} must be a map of strings"));
        }
        if field == "labels" {
            let labels = values.iter();
            let labels = labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
            let errors = validation::label_errors(labels, &FieldPath::new("metadata.labels"));
            if let Some(error) = errors.first() {
                return Err(error.to_string());
            }
        }
        metadata.insert(field.to_owned(), Value::Object(values.clone()));
    }
    Ok(metadata)
}
