//! Admission plugins: they see every write of every kind, may change it (mutate) and may refuse it (validate).

use std::fmt;
use std::ops::{Deref, DerefMut};

use apiloom_meta::managed_fields::ManagedFields;
use apiloom_meta::{ApiError, GroupKind, GroupResource, Object, Resource};
use async_trait::async_trait;
use serde_json::Value;

use crate::options::RequestContext;
use crate::reads::lister::{Lister, Listers};

/// The operation of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the API's own")]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// One write, for admission plugins.
#[derive(Debug)]
#[non_exhaustive]
pub struct AdmissionRequest<'a> {
    /// The operation.
    pub operation: Operation,
    /// The resource of the object.
    pub resource: &'a GroupResource,
    /// The version of the request; the objects are in this version.
    pub version: &'a str,
    /// The kind of the objects: that of the resource, or of the bodies of a subresource, such as Scale.
    pub kind: &'a GroupKind,
    /// `status`, `scale` and so on; empty for the object itself.
    pub subresource: &'a str,
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Name of the object. On create it may be empty during mutation, if the name is generated.
    pub name: &'a str,
    /// Whether this is a dry run.
    pub dry_run: bool,
    /// Whether objects of the resource stay, in the store or by code of the program; those of reviews do not.
    pub has_store: bool,
    /// The new object; `None` on delete and connect.
    pub object: Option<AdmittedObject<'a>>,
    /// The existing object; `None` on create, and for the body of a subresource with a handler.
    pub old_object: Option<&'a Object>,
    /// User and warnings of the request.
    pub ctx: &'a RequestContext,
}

/// The new object of a request, to read or to change. It records mutable access: an object without it need not be
/// defaulted again.
#[derive(Debug)]
pub struct AdmittedObject<'a> {
    object: &'a mut Object,
    is_touched: bool,
    /// The managedFields of before it was borrowed mutably.
    managed: Option<Value>,
}

impl<'a> AdmittedObject<'a> {
    pub(crate) fn new(object: &'a mut Object) -> Self {
        Self {
            object,
            is_touched: false,
            managed: None,
        }
    }

    /// Whether the object was borrowed mutably.
    pub(crate) fn is_touched(&self) -> bool {
        self.is_touched
    }

    /// The managedFields of before it was borrowed mutably.
    pub(crate) fn into_managed(self) -> Option<Value> {
        self.managed
    }
}

impl Deref for AdmittedObject<'_> {
    type Target = Object;
    fn deref(&self) -> &Object {
        self.object
    }
}

impl DerefMut for AdmittedObject<'_> {
    fn deref_mut(&mut self) -> &mut Object {
        if !self.is_touched {
            self.is_touched = true;
            self.managed = ManagedFields::value(self.object).cloned();
        }
        self.object
    }
}

impl AdmissionRequest<'_> {
    /// Whether the objects of the request are of this kind, in any version. Those of the subresource `scale` are not: they
    /// are of the kind Scale.
    pub fn is<K: Resource>(&self) -> bool {
        self.resource.group == K::GROUP
            && self.resource.resource == K::PLURAL
            && self.kind.kind == K::KIND
    }
    /// A Forbidden error: `flunders.wardle.example.com "NAME" is forbidden: WHY`.
    pub fn forbidden(&self, why: &str) -> ApiError {
        ApiError::forbidden(self.resource, self.refused_name(), why)
    }
    /// The name for a refusal: the request's, else the object's, else its generateName.
    fn refused_name(&self) -> &str {
        let object = self.object.as_deref();
        let names = [
            Some(self.name),
            object.map(Object::name),
            object.map(|o| o.meta_str("generateName")),
        ];
        names
            .into_iter()
            .flatten()
            .find(|name| !name.is_empty())
            .unwrap_or("Unknown")
    }
}

/// An admission plugin. By default both hooks allow everything.
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// The plugin's name in `--disable-admission-plugins`.
    fn name(&self) -> &'static str;
    /// May change the object before validation, or refuse the request.
    async fn mutate(&self, _request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        Ok(())
    }
    /// Validates the object as it would be written.
    async fn validate(&self, _request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        Ok(())
    }
}

/// Access to the registry for the constructors of plugins.
#[derive(Debug)]
pub struct AdmissionContext {
    listers: Listers,
}

impl AdmissionContext {
    pub(crate) fn new(listers: Listers) -> Self {
        Self { listers }
    }

    /// A lister of all objects of a kind, from memory. A kind that cannot be listed, such as one that is not registered, is
    /// an error of [`RegistryBuilder::build`](crate::RegistryBuilder::build).
    pub fn lister<K: Resource>(&self) -> Lister<K> {
        self.listers.lister()
    }
}

/// The enabled plugins, in order.
#[derive(Default)]
pub(crate) struct Chain {
    plugins: Vec<Box<dyn Admission>>,
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.plugins.iter().map(|p| p.name()))
            .finish()
    }
}

impl Chain {
    pub(crate) fn new(plugins: Vec<Box<dyn Admission>>) -> Self {
        Self { plugins }
    }

    /// Runs the mutating hooks.
    pub(crate) async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        for plugin in &self.plugins {
            let judged = plugin.mutate(request).await;
            judged.map_err(|error| refusal(request, error))?;
        }
        Ok(())
    }

    /// Runs the validating hooks.
    pub(crate) async fn validate(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        for plugin in &self.plugins {
            plugin
                .validate(request)
                .await
                .map_err(|error| refusal(request, error))?;
        }
        Ok(())
    }
}

/// Makes an error without a reason a Forbidden one; other errors are passed on unchanged.
fn refusal(request: &AdmissionRequest<'_>, error: ApiError) -> ApiError {
    if error.reason.is_some() {
        error
    } else {
        request.forbidden(&error.message)
    }
}
