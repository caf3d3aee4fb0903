//! The target of a write: checks of a body against the URL, and the calls of admission.

use apiloom_meta::kind::Scope;
use apiloom_meta::{ApiError, Object};

use super::Writes;
use super::{managed, stamp};
use crate::registry::options::{CreateOptions, RequestContext};
use crate::registry::rules::admission::{AdmissionRequest, AdmittedObject, Operation};

/// The target of a write: its key, its request, and whether it is a dry run.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) ctx: &'a RequestContext,
    pub(crate) namespace: Option<&'a str>,
    /// Empty on create if the name is not generated yet.
    pub(crate) name: &'a str,
    pub(crate) subresource: &'a str,
    /// The name of the field manager, which owns the fields that the write changes.
    pub(crate) manager: &'a str,
    pub(crate) dry_run: bool,
    /// The operation for admission, if the objects of the request do not tell it.
    pub(crate) operation: Option<Operation>,
}

impl<'a> Target<'a> {
    /// The target of a create, update, patch or apply.
    pub(crate) fn of_write(
        ctx: &'a RequestContext,
        namespace: Option<&'a str>,
        name: &'a str,
        subresource: &'a str,
        options: &'a CreateOptions,
    ) -> Self {
        Self {
            ctx,
            namespace,
            name,
            subresource,
            manager: options.manager(),
            dry_run: options.dry_run,
            operation: None,
        }
    }
}

impl Writes {
    /// Sets apiVersion and kind. [`Writes::decode`] has checked those of a body; other callers may leave them out. Those of a custom
    /// resource stay as they are: its validation refuses others.
    pub(crate) fn set_type(&self, object: &mut Object) {
        let is_typed = !object.kind().is_empty() && !object.api_version().is_empty();
        if is_typed && self.resource.def().custom.is_some() {
            return;
        }
        object.set_type(
            &self.resource.version().api_version,
            &self.resource.def().kind,
        );
    }

    /// Checks the namespace of a body against that of the URL, and sets it if it is absent. It is removed from an object
    /// of a cluster-scoped kind.
    pub(crate) fn match_namespace(
        &self,
        object: &mut Object,
        namespace: Option<&str>,
    ) -> Result<(), ApiError> {
        if self.resource.kind.scope == Scope::Cluster {
            object.set_meta_str("namespace", "");
            return Ok(());
        }
        let namespace = namespace.unwrap_or_default();
        if object.namespace().is_empty() {
            object.set_meta_str("namespace", namespace);
            return Ok(());
        }
        if object.namespace() == namespace {
            return Ok(());
        }
        Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ))
    }

    /// Checks the name of a body against that of the URL.
    pub(crate) fn match_name(&self, object: &Object, name: &str) -> Result<(), ApiError> {
        let given = object.name();
        if given.is_empty() {
            let text = format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            );
            return Err(ApiError::bad_request(text));
        }
        if given == name {
            return Ok(());
        }
        Err(ApiError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )))
    }

    fn admission_request<'a>(
        &'a self,
        target: Target<'a>,
        object: Option<&'a mut Object>,
        old_object: Option<&'a Object>,
    ) -> AdmissionRequest<'a> {
        let resource = self.parent.as_ref().unwrap_or(&self.resource);
        AdmissionRequest {
            operation: target.operation.unwrap_or(match (&object, old_object) {
                (None, _) => Operation::Delete,
                (Some(_), None) => Operation::Create,
                (Some(_), Some(_)) => Operation::Update,
            }),
            resource: resource.group_resource(),
            version: &resource.def().version,
            kind: self.resource.group_kind(),
            subresource: target.subresource,
            namespace: target.namespace.unwrap_or_default(),
            name: target.name,
            dry_run: target.dry_run,
            has_store: resource.def().has_store,
            object: object.map(AdmittedObject::new),
            old_object,
            ctx: target.ctx,
        }
    }

    /// Removes what clients do not set from the object of a request, and applies its defaults.
    pub(crate) fn default_input(
        &self,
        target: Target<'_>,
        object: &mut Object,
    ) -> Result<(), ApiError> {
        wipe_input(target, object);
        let max_bytes = self.settings.max_object_bytes;
        self.resource
            .kind
            .default_within(object, self.resource.version, max_bytes)
    }

    /// Runs the mutating phase of admission for a create or, with an old object, an update. If a plugin may have changed
    /// the object, its type, owner references and defaults are set again afterwards.
    pub(crate) async fn admit_mutation(
        &self,
        target: Target<'_>,
        object: &mut Object,
        old_object: Option<&Object>,
    ) -> Result<(), ApiError> {
        let max_bytes = self.settings.max_object_bytes;
        let mut request = self.admission_request(target, Some(object), old_object);
        self.settings.chain.mutate(&mut request).await?;
        // A plugin that removed the object from the request may have changed it.
        let (is_touched, before) = match request.object {
            Some(object) => (object.is_touched(), object.into_managed()),
            None => (true, None),
        };
        if is_touched {
            self.set_type(object);
            stamp::dedup_owner_references(target.ctx, object, true);
            managed::restore_managed(target.ctx, object, before);
            self.resource
                .kind
                .default_within(object, self.resource.version, max_bytes)?;
        }
        Ok(())
    }

    /// Runs the validating phase of admission for a create or, with an old object, an update.
    pub(crate) async fn admit_validation(
        &self,
        target: Target<'_>,
        object: &mut Object,
        old_object: Option<&Object>,
    ) -> Result<(), ApiError> {
        self.settings
            .chain
            .validate(&self.admission_request(target, Some(object), old_object))
            .await
    }

    /// Runs both phases of admission for a request that writes no object.
    pub(crate) async fn admit_without_object(&self, target: Target<'_>) -> Result<(), ApiError> {
        let mut request = self.admission_request(target, None, None);
        self.settings.chain.mutate(&mut request).await?;
        self.settings.chain.validate(&request).await
    }

    /// Runs both phases of admission for a delete.
    pub(crate) async fn admit_deletion(
        &self,
        target: Target<'_>,
        old_object: &Object,
    ) -> Result<(), ApiError> {
        let mut request = self.admission_request(target, None, Some(old_object));
        self.settings.chain.mutate(&mut request).await?;
        self.settings.chain.validate(&request).await
    }
}

/// Removes what clients do not set from the object of a request.
pub(crate) fn wipe_input(target: Target<'_>, object: &mut Object) {
    stamp::wipe(object);
    stamp::dedup_owner_references(target.ctx, object, false);
}
