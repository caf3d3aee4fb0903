//! The rules of a kind and of the server: preparing hooks of strategies, defaults of what clients send, and admission.

use std::sync::Arc;

use apiloom_meta::kind::DeletionRule;
use apiloom_meta::schema::conceal_steps;
use apiloom_meta::{ApiError, Object};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::decode::Decoder;
use super::request::WriteRequest;
use super::settings::WriteSettings;
use super::versions::HubObject;
use super::{managed, stamp};
use crate::objects::hooks::ErasedStrategy;
use crate::objects::versioned_resource::VersionedResource;
use crate::rules::admission::{AdmissionRequest, AdmittedObject, Bodies, Operation, Rounds};

/// Prepares and admits the objects of a resource.
#[derive(Debug)]
pub(crate) struct Rules {
    resource: Arc<VersionedResource>,
    /// Of the bodies of a subresource: the resource to which it belongs.
    parent: Option<Arc<VersionedResource>>,
    settings: Arc<WriteSettings>,
    decoder: Decoder,
}

impl Bodies for Rules {
    fn kind_version(&self) -> &str {
        &self.resource.def().version
    }

    fn versions(&self) -> Vec<&str> {
        let resource = self.of_url();
        let all = resource.kind.versions.all.iter();
        all.filter(|version| version.resource == *resource.group_resource())
            .map(|version| version.def.version.as_str())
            .collect()
    }

    fn convert<'a>(
        &'a self,
        object: Object,
        from: &'a str,
        to: &'a str,
    ) -> BoxFuture<'a, Result<Object, ApiError>> {
        async move {
            if self.parent.is_some() || from == to {
                // The body of a subresource is the same in all versions of the resource.
                return Ok(object);
            }
            let versions = &self.resource.kind.versions;
            let find = |name: &str| {
                let found = versions.find_named(self.resource.group_resource(), name);
                found.ok_or_else(|| ApiError::internal(format!("there is no version {name}")))
            };
            versions.object_in(object, find(from)?, find(to)?).await
        }
        .boxed()
    }

    fn decode(&self, document: Value) -> Result<Object, ApiError> {
        let decoded = self.decoder.decode_result(document);
        let (mut object, _) = decoded.map_err(ApiError::internal)?;
        self.resource.kind.versions.default_within(
            &mut object,
            self.resource.version,
            self.settings.max_object_bytes,
        )?;
        Ok(object)
    }

    fn conceal_steps(&self, steps: &mut Value, version: &str) {
        let versions = &self.resource.kind.versions;
        let found = versions.find_named(self.resource.group_resource(), version);
        let schema = found.map_or(self.resource.schema(), |found| versions[found].schema());
        conceal_steps(schema, steps);
    }
}

impl Rules {
    pub(super) fn new(
        resource: Arc<VersionedResource>,
        parent: Option<Arc<VersionedResource>>,
        settings: Arc<WriteSettings>,
    ) -> Self {
        Self {
            decoder: Decoder::new(Arc::clone(&resource), Arc::clone(&settings)),
            resource,
            parent,
            settings,
        }
    }

    /// The resource of the URL.
    pub(crate) fn of_url(&self) -> &VersionedResource {
        self.parent.as_ref().unwrap_or(&self.resource)
    }

    fn admission_request<'a>(
        &'a self,
        request: WriteRequest<'a>,
        object: Option<&'a mut Object>,
        old_object: Option<&'a Object>,
    ) -> AdmissionRequest<'a> {
        let resource = self.of_url();
        AdmissionRequest {
            operation: request.operation.unwrap_or(match (&object, old_object) {
                (None, _) => Operation::Delete,
                (Some(_), None) => Operation::Create,
                (Some(_), Some(_)) => Operation::Update,
            }),
            resource: resource.group_resource(),
            version: &resource.def().version,
            kind: self.resource.group_kind(),
            subresource: request.subresource,
            namespace: request.namespace.unwrap_or_default(),
            name: request.name,
            dry_run: request.dry_run,
            has_store: resource.has_objects(),
            object: object.map(AdmittedObject::new),
            old_object,
            ctx: request.ctx,
            bodies: self,
            rounds: Rounds::default(),
        }
    }

    /// Removes what clients do not set from the object of a request, and applies its defaults.
    pub(crate) fn default_input(
        &self,
        request: WriteRequest<'_>,
        object: &mut Object,
    ) -> Result<(), ApiError> {
        wipe_input(request, object);
        let max_bytes = self.settings.max_object_bytes;
        self.resource
            .kind
            .versions
            .default_within(object, self.resource.version, max_bytes)
    }

    /// Runs a preparing hook of the request version's own strategy, if it has one, and applies the defaults again if
    /// the hook changed the object.
    pub(crate) fn prepare(
        &self,
        object: &mut Object,
        hook: impl FnOnce(&dyn ErasedStrategy, &mut Object) -> bool,
    ) {
        let own = self.resource.version().strategy.as_deref();
        if own.is_some_and(|strategy| hook(strategy, object)) {
            self.resource
                .kind
                .versions
                .default(object, self.resource.version);
        }
    }

    /// Runs a preparing hook of the hub's strategy on the object in the hub, if the request's version has no strategy
    /// of its own. Changes of the hook are applied to the object in the request's version too, except for fields that
    /// it lacks.
    ///
    /// # Errors
    /// If the changed object cannot be converted.
    pub(crate) fn prepare_in_hub(
        &self,
        object: &mut Object,
        in_hub: &mut HubObject<'_>,
        hook: impl FnOnce(&dyn ErasedStrategy, &mut HubObject<'_>) -> bool,
    ) -> Result<(), ApiError> {
        let versions = &self.resource.kind.versions;
        let strategy = versions.strategy(self.resource.version);
        let Some((_, strategy)) = strategy.filter(|(version, _)| *version != self.resource.version)
        else {
            return Ok(());
        };
        let before = in_hub.new.clone();
        if !hook(strategy, in_hub) {
            return Ok(());
        }
        versions.default(&mut in_hub.new, versions.hub);
        versions.apply_hook_changes(
            object,
            self.resource.version,
            versions.hub,
            [before, in_hub.new.clone()],
        )?;
        versions.default(object, self.resource.version);
        Ok(())
    }

    /// Whether the kind has steps of its own at the beginning of a deletion, before which kube-apiserver checks the preconditions.
    pub(crate) fn begins_deletion(&self) -> bool {
        let versions = &self.resource.kind.versions;
        let deletion = &versions.stored_version().def.deletion;
        let is_container = matches!(deletion, DeletionRule::Container { .. });
        let strategy = versions.strategy(versions.stored);
        is_container || strategy.is_some_and(|(_, strategy)| strategy.prepares_delete())
    }

    /// The object as the strategy prepares it when its deletion begins; `None` if it does not.
    pub(crate) fn prepared_for_delete(
        &self,
        request: WriteRequest<'_>,
        stored: &Object,
    ) -> Option<Object> {
        let versions = &self.resource.kind.versions;
        let (owner, strategy) = versions.strategy(versions.stored)?;
        if stored.is_deleting() || owner != versions.stored || !strategy.prepares_delete() {
            return None;
        }
        let mut object = stored.clone();
        strategy.prepare_for_delete(request.ctx, &mut object);
        Some(object)
    }

    /// The grace period of a first delete according to the strategy of the kind; `None` for that of the definition. `stored` is the
    /// object in the storage version, `old` in that of the request.
    pub(crate) async fn grace_seconds(
        &self,
        request: WriteRequest<'_>,
        stored: &Object,
        old: &Object,
        requested: Option<i64>,
    ) -> Result<Option<i64>, ApiError> {
        let versions = &self.resource.kind.versions;
        let Some((owner, strategy)) = versions.strategy(self.resource.version) else {
            return Ok(requested);
        };
        if owner == self.resource.version {
            return Ok(strategy.grace_seconds(request.ctx, old, requested));
        }
        let object = versions.object_in(stored.clone(), versions.stored, owner);
        let object = object.await?;
        Ok(strategy.grace_seconds(request.ctx, &object, requested))
    }

    /// Runs the mutating phase of admission for a create or, with an old object, an update. If a plugin may have changed
    /// the object, its type, owner references and defaults are set again afterwards.
    pub(crate) async fn admit_mutation(
        &self,
        request: WriteRequest<'_>,
        object: &mut Object,
        old_object: Option<&Object>,
    ) -> Result<(), ApiError> {
        let max_bytes = self.settings.max_object_bytes;
        let mut admission = self.admission_request(request, Some(object), old_object);
        self.settings.chain.mutate(&mut admission).await?;
        // A plugin that removed the object from the request may have changed it.
        let (is_touched, before) = match admission.object {
            Some(object) => (object.is_touched(), object.into_managed()),
            None => (true, None),
        };
        if is_touched {
            self.resource.set_type(object);
            stamp::dedup_owner_references(request.ctx, object, true);
            managed::restore_managed(request.ctx, object, before);
            self.resource
                .kind
                .versions
                .default_within(object, self.resource.version, max_bytes)?;
        }
        Ok(())
    }

    /// Runs the validating phase of admission for a create or, with an old object, an update.
    pub(crate) async fn admit_validation(
        &self,
        request: WriteRequest<'_>,
        object: &mut Object,
        old_object: Option<&Object>,
    ) -> Result<(), ApiError> {
        self.settings
            .chain
            .validate(&self.admission_request(request, Some(object), old_object))
            .await
    }

    /// Runs both phases of admission for a request that writes no object.
    pub(crate) async fn admit_without_object(
        &self,
        request: WriteRequest<'_>,
    ) -> Result<(), ApiError> {
        let mut admission = self.admission_request(request, None, None);
        self.settings.chain.mutate(&mut admission).await?;
        self.settings.chain.validate(&admission).await
    }

    /// Runs both phases of admission for a delete.
    pub(crate) async fn admit_deletion(
        &self,
        request: WriteRequest<'_>,
        old_object: &Object,
    ) -> Result<(), ApiError> {
        let mut admission = self.admission_request(request, None, Some(old_object));
        self.settings.chain.mutate(&mut admission).await?;
        self.settings.chain.validate(&admission).await
    }
}

/// Removes what clients do not set from the object of a request.
pub(crate) fn wipe_input(request: WriteRequest<'_>, object: &mut Object) {
    stamp::wipe(object);
    stamp::dedup_owner_references(request.ctx, object, false);
}
