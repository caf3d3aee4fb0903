//! Admission plugins: they see every write of every kind, may change it (mutate) and may refuse it (validate).

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Deref, DerefMut};

use apiloom_meta::managed_fields::ManagedFields;
use apiloom_meta::{ApiError, GroupKind, GroupResource, Object, Resource};
use async_trait::async_trait;
use futures_util::future::BoxFuture;
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
    pub(crate) bodies: &'a dyn Bodies,
    pub(crate) rounds: Rounds,
}

/// The objects of a request in other versions, and what another program made of one.
pub(crate) trait Bodies: fmt::Debug + Send + Sync {
    /// The version of the kind of the objects.
    fn kind_version(&self) -> &str;

    /// The names of the versions of the resource, with that of the request.
    fn versions(&self) -> Vec<&str>;

    /// The object in another version.
    fn convert<'a>(
        &'a self,
        object: Object,
        from: &'a str,
        to: &'a str,
    ) -> BoxFuture<'a, Result<Object, ApiError>>;

    /// The object of a document in the version of the request, with its defaults.
    fn decode(&self, document: Value) -> Result<Object, ApiError>;

    /// Conceals the secret values in the steps of a JSON patch of an object in this version.
    fn conceal_steps(&self, steps: &mut Value, version: &str);
}

/// How often the mutating phase of a request runs, and what plugins note for the second time.
#[derive(Default)]
pub(crate) struct Rounds {
    is_second: bool,
    is_second_wanted: bool,
    notes: BTreeMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rounds")
            .field("is_second", &self.is_second)
            .finish_non_exhaustive()
    }
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
    /// The version of the kind of the objects; that of the request, unless the objects are bodies of a subresource, such as a Scale.
    pub fn kind_version(&self) -> &str {
        self.bodies.kind_version()
    }

    /// The names of the versions in which the resource is served, in their order, with that of the request. The objects of the request can
    /// be shown in each of them.
    pub fn versions(&self) -> Vec<&str> {
        self.bodies.versions()
    }

    /// An object of the request in another version of the resource.
    ///
    /// # Errors
    /// InternalError if it cannot be converted.
    pub async fn shown_in(&self, object: &Object, version: &str) -> Result<Object, ApiError> {
        let converted = self.bodies.convert(object.clone(), self.version, version);
        converted.await
    }

    /// Replaces the new object by a document in this version of the resource, as another program changed it. Unknown fields are dropped, and
    /// defaults applied.
    ///
    /// # Errors
    /// InternalError if the document is no object of the kind, or cannot be converted.
    pub async fn replace_object(&mut self, document: Value, version: &str) -> Result<(), ApiError> {
        let mut object = document;
        if version != self.version {
            let other = Object::from_value(object)
                .ok_or_else(|| ApiError::internal("the document is not an object"))?;
            let converted = self.bodies.convert(other, version, self.version).await?;
            object = converted.into_value();
        }
        let object = self.bodies.decode(object)?;
        if let Some(admitted) = &mut self.object {
            **admitted = object;
        }
        Ok(())
    }

    /// The steps of a JSON patch of an object in this version of the resource, without their secret values: as an audit may show them.
    pub fn concealed_steps(&self, mut steps: Value, version: &str) -> Value {
        self.bodies.conceal_steps(&mut steps, version);
        steps
    }

    /// Whether the mutating phase runs for the second time, which [`reinvoke`](Self::reinvoke) asked for.
    pub fn is_reinvocation(&self) -> bool {
        self.rounds.is_second
    }

    /// Lets the mutating phase run once more, at most: plugins that ran before may have something to add to what has changed.
    pub fn reinvoke(&mut self) {
        self.rounds.is_second_wanted = true;
    }

    /// Takes what the plugin kept in the first round, by its type; the default if it kept nothing.
    pub fn take_notes<T: Any + Default + Send + Sync>(&mut self) -> T {
        let notes = self.rounds.notes.remove(&TypeId::of::<T>());
        let notes = notes.and_then(|notes| notes.downcast().ok());
        notes.map(|notes| *notes).unwrap_or_default()
    }

    /// Keeps notes of the plugin for the second round, by their type.
    pub fn keep_notes<T: Any + Send + Sync>(&mut self, notes: T) {
        let notes = Box::new(notes);
        self.rounds.notes.insert(TypeId::of::<T>(), notes);
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
    /// Whether it runs after the plugins of the server and of the program, as those do that ask other programs. Default no.
    fn asks_others(&self) -> bool {
        false
    }
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
    registered: BTreeSet<GroupResource>,
}

impl AdmissionContext {
    pub(crate) fn new(listers: Listers, registered: BTreeSet<GroupResource>) -> Self {
        Self {
            listers,
            registered,
        }
    }

    /// A lister of all objects of a kind, from memory. A kind that cannot be listed, such as one that is not registered, is
    /// an error of [`RegistryBuilder::build`](crate::RegistryBuilder::build).
    pub fn lister<K: Resource>(&self) -> Lister<K> {
        self.listers.lister()
    }

    /// As [`AdmissionContext::lister`]; `None` if the server has no such kind, in any version.
    pub fn lister_if_registered<K: Resource>(&self) -> Option<Lister<K>> {
        let resource = GroupResource::new(K::GROUP, K::PLURAL);
        let is_registered = self.registered.contains(&resource);
        is_registered.then(|| self.lister())
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
    pub(crate) fn new(mut plugins: Vec<Box<dyn Admission>>) -> Self {
        // The order of others is kept.
        plugins.sort_by_key(|plugin| plugin.asks_others());
        Self { plugins }
    }

    /// Runs the mutating hooks, and once more if one of them asks for it.
    pub(crate) async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        self.mutate_once(request).await?;
        if !request.rounds.is_second_wanted {
            return Ok(());
        }
        request.rounds.is_second = true;
        self.mutate_once(request).await
    }

    async fn mutate_once(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
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
    if error.reason.is_some() || error.foreign.is_some() {
        error
    } else {
        request.forbidden(&error.message)
    }
}
