//! The object that a write is about, and the calls of admission for it.

use apiloom_meta::{ApiError, Object};

use super::stamp;
use crate::registry::endpoint::Endpoint;
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

impl Endpoint {
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
            resource: &self.kind.resource,
            version: &self.def().version,
            subresource: target.subresource,
            namespace: target.namespace.unwrap_or_default(),
            name: target.name,
            dry_run: target.dry_run,
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
        let max_bytes = self.shared.max_object_bytes;
        self.kind.default_within(object, self.version, max_bytes)?;
        let mut request = self.admission_request(target, Some(object), old_object);
        self.shared.chain.mutate(&mut request).await?;
        // A plugin may take it out, and change it then.
        let is_touched = request.object.is_none_or(|object| object.is_touched());
        if is_touched {
            self.set_type(object);
            stamp::dedup_owner_references(target.ctx, object, true);
            self.kind.default_within(object, self.version, max_bytes)?;
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
        self.shared
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
        self.shared.chain.mutate(&mut request).await?;
        self.shared.chain.validate(&request).await
    }
}
