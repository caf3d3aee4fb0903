//! Cross-kind judgement: plugins that see every write, may change it (mutate) and may refuse it (validate).

use apiloom_meta::{ApiError, GroupResource, Object, Resource};
use async_trait::async_trait;

use super::{Lister, RequestContext};

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the API's own")]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// One write, as a plugin sees it.
#[derive(Debug)]
#[non_exhaustive]
pub struct AdmissionRequest<'a> {
    /// What is being done.
    pub operation: Operation,
    /// To which resource.
    pub resource: &'a GroupResource,
    /// The version the client speaks; objects are in this version.
    pub version: &'a str,
    /// `status` or empty.
    pub subresource: &'a str,
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Name of the object; on create the one it will have.
    pub name: &'a str,
    /// Whether nothing will be written.
    pub dry_run: bool,
    /// The new object; `None` on delete.
    pub object: Option<&'a mut Object>,
    /// The present object; `None` on create.
    pub old_object: Option<&'a Object>,
    /// Who asks, and where warnings go.
    pub ctx: &'a RequestContext,
}

impl AdmissionRequest<'_> {
    /// Whether the request is for this kind, in any version.
    pub fn is<K: Resource>(&self) -> bool {
        self.resource.group == K::GROUP && self.resource.resource == K::PLURAL
    }
    /// A refusal: 403 `flunders.wardle.example.com "NAME" is forbidden: WHY`.
    pub fn forbidden(&self, why: &str) -> ApiError {
        ApiError::forbidden(self.resource, self.name, why)
    }
}

/// An admission plugin. Both hooks default to allowing everything.
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// The name by which `--disable-admission-plugins` knows it.
    fn name(&self) -> &'static str;
    /// May change the object before it is validated, or refuse.
    async fn mutate(&self, _request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        Ok(())
    }
    /// Judges the object as it would be written.
    async fn validate(&self, _request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        Ok(())
    }
}

/// What a plugin may ask for when it is made.
pub struct AdmissionContext {}

impl AdmissionContext {
    /// All objects of a kind, kept in memory.
    pub fn lister<K: Resource>(&self) -> Lister<K> {
        todo!()
    }
}
