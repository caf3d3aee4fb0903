//! The versions of a kind: which there are, how an object becomes one of another, and what the schema and the strategy of each
//! do to it. They know nothing of the store.
//!
//! Invariant: a conversion only prunes; it applies no defaults of the version that it leads to.

use std::ops::Index;
use std::sync::Arc;

use apiloom_meta::field::go_quote;
use apiloom_meta::kind::Converter;
use apiloom_meta::schema::merge_difference;
use apiloom_meta::{ApiError, GroupResource, Object};

use super::hooks::ErasedStrategy;
use super::kind_version::{KindVersion, VersionIndex};
use super::recent_conversions::RecentConversions;
use crate::large::LargeDocuments;

/// The versions of a kind; indexed by [`VersionIndex`].
#[derive(Debug)]
pub(crate) struct KindVersions {
    /// In order of registration.
    pub(crate) all: Vec<KindVersion>,
    /// The version by way of which objects are converted in memory.
    pub(crate) hub: VersionIndex,
    /// The storage version.
    pub(crate) stored: VersionIndex,
    /// How objects are converted between versions.
    pub(crate) conversion: KindConversion,
    /// For each version, the conversions of recent changes, shared by watchers; empty for a single version.
    pub(crate) recent: Vec<RecentConversions>,
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

impl Index<VersionIndex> for KindVersions {
    type Output = KindVersion;

    fn index(&self, version: VersionIndex) -> &KindVersion {
        &self.all[version]
    }
}

impl KindVersions {
    pub(crate) fn new(
        all: Vec<KindVersion>,
        hub: VersionIndex,
        stored: VersionIndex,
        conversion: KindConversion,
    ) -> Self {
        // A single version is never converted.
        let converted = all.iter().filter(|_| all.len() > 1);
        Self {
            recent: converted.map(|_| RecentConversions::default()).collect(),
            all,
            hub,
            stored,
            conversion,
        }
    }

    /// The storage version.
    pub(crate) fn stored_version(&self) -> &KindVersion {
        &self[self.stored]
    }

    /// The version with this `apiVersion`.
    pub(crate) fn find(&self, api_version: &str) -> Option<VersionIndex> {
        self.all.iter().position(|v| v.api_version == api_version)
    }

    /// The version of this name, of a resource.
    pub(crate) fn find_named(&self, resource: &GroupResource, name: &str) -> Option<VersionIndex> {
        self.all
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
    /// [`Self::object_in`].
    pub(crate) fn convert(
        &self,
        object: Object,
        from: VersionIndex,
        to: VersionIndex,
    ) -> Result<Object, ApiError> {
        self.try_convert(object, from, to)
            .map_err(ApiError::internal)
    }

    /// As [`Self::convert`]; the error says why the object cannot be converted.
    fn try_convert(
        &self,
        object: Object,
        from: VersionIndex,
        to: VersionIndex,
    ) -> Result<Object, String> {
        if from == to {
            return Ok(object);
        }
        let (source, target) = (&self[from], &self[to]);
        let name = object.name().to_owned();
        let fail = |why: &str| {
            let (kind, source, target) =
                (&source.def.kind, &source.api_version, &target.api_version);
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
        object.prune_by(self[version].schema());
    }

    /// Applies the defaults of a version: the schema's, then the strategy's.
    pub(crate) fn default(&self, object: &mut Object, version: VersionIndex) {
        object.default_by(self[version].schema());
        self.default_by_rules(object, version);
    }

    /// As [`Self::default`], for an object that a client sent.
    ///
    /// # Errors
    /// RequestEntityTooLarge if the defaults of the schema add more than `max_bytes`.
    pub(crate) fn default_within(
        &self,
        object: &mut Object,
        version: VersionIndex,
        max_bytes: usize,
    ) -> Result<(), ApiError> {
        let schema = self[version].schema();
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
            .find_map(|v| Some((v, self[v].strategy.as_deref()?)))
    }

    /// Applies the defaults that the strategy for a version has by code, in the version of the strategy. An object that cannot
    /// be converted to that version is left unchanged here: the write converts it again and returns the error.
    fn default_by_rules(&self, object: &mut Object, version: VersionIndex) {
        let strategy = self.strategy(version);
        let Some((owner, strategy)) = strategy.filter(|(_, strategy)| strategy.has_defaults())
        else {
            return;
        };
        if owner == version {
            strategy.default(object);
            return;
        }
        let Ok(mut converted) = self.convert(object.clone(), version, owner) else {
            return;
        };
        let before = converted.clone();
        if strategy.default(&mut converted) {
            let _ = self.apply_hook_changes(object, version, owner, [before, converted]);
        }
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
        let schema = Some(self[version].schema().as_ref());
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

    /// As [`Self::convert_with_defaults`]; the error says why the object cannot be converted.
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
}
