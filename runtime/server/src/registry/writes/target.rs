//! The object that a write is about: what its body must agree with, and the calls of admission for it.

use apiloom_meta::kind::Scope;
use apiloom_meta::{ApiError, Object};

use super::Writes;
use super::stamp;
use crate::registry::options::RequestContext;
use crate::registry::rules::admission::{AdmissionRequest, AdmittedObject, Operation};

/// Where a write goes, who asks for it and whether it is only tried.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) ctx: &'a RequestContext,
    pub(crate) namespace: Option<&'a str>,
    /// Empty on create while the name is still to be generated.
    pub(crate) name: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) dry_run: bool,
}

impl Writes {
    /// Writes apiVersion and kind; [`Writes::decode`] checked them, other callers need not know them.
    pub(crate) fn set_type(&self, object: &mut Object) {
        object.set_type(
            &self.resource.version().api_version,
            &self.resource.def().kind,
        );
    }

    /// Checks the namespace of a body against the URL's and fills it in. A cluster-scoped kind has none, also when
    /// the body names one.
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

    /// Checks the name of a body against the URL's.
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
        AdmissionRequest {
            operation: match (&object, old_object) {
                (None, _) => Operation::Delete,
                (Some(_), None) => Operation::Create,
                (Some(_), Some(_)) => Operation::Update,
            },
            resource: &self.resource.kind.resource,
            version: &self.resource.def().version,
            subresource: target.subresource,
            namespace: target.namespace.unwrap_or_default(),
            name: target.name,
            dry_run: target.dry_run,
            has_store: self.resource.def().has_store,
            object: object.map(AdmittedObject::new),
            old_object,
            ctx: target.ctx,
        }
    }

    /// The mutating phase of a create or, with an old object, of an update; then what decoding does is done for what
    /// the plugins put in.
    pub(crate) async fn admit_mutation(
        &self,
        target: Target<'_>,
        object: &mut Object,
        old_object: Option<&Object>,
    ) -> Result<(), ApiError> {
        stamp::wipe(object);
        stamp::dedup_owner_references(target.ctx, object, false);
        let max_bytes = self.settings.max_object_bytes;
        self.resource
            .kind
            .default_within(object, self.resource.version, max_bytes)?;
        let mut request = self.admission_request(target, Some(object), old_object);
        self.settings.chain.mutate(&mut request).await?;
        // A plugin may take it out, and change it then.
        let is_touched = request.object.is_none_or(|object| object.is_touched());
        if is_touched {
            self.set_type(object);
            stamp::dedup_owner_references(target.ctx, object, true);
            self.resource
                .kind
                .default_within(object, self.resource.version, max_bytes)?;
        }
        Ok(())
    }

    /// The validating phase of a create or, with an old object, of an update.
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

    /// Both phases of a delete.
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
