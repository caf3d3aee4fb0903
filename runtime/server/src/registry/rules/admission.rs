//! Cross-kind judgement: plugins that see every write, may change it (mutate) and may refuse it (validate).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use apiloom_meta::{ApiError, GroupResource, Object, Resource};
use async_trait::async_trait;
use parking_lot::Mutex;

use crate::registry::located::located;
use crate::registry::objects::kind::Kind;
use crate::registry::options::RequestContext;
use crate::registry::reads::lister::{Lister, ListerCore};

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
    /// Name of the object. On create it may be empty while plugins mutate, when the name is still to be generated.
    pub name: &'a str,
    /// Whether nothing will be written.
    pub dry_run: bool,
    /// Whether objects of the resource are kept in a store; those of reviews are not.
    pub has_store: bool,
    /// The new object; `None` on delete.
    pub object: Option<AdmittedObject<'a>>,
    /// The present object; `None` on create.
    pub old_object: Option<&'a Object>,
    /// Who asks, and where warnings go.
    pub ctx: &'a RequestContext,
}

/// The new object of a request, to read or to change. It knows whether it was borrowed mutably: what
/// was not need not be defaulted again.
#[derive(Debug)]
pub struct AdmittedObject<'a> {
    object: &'a mut Object,
    is_touched: bool,
}

impl<'a> AdmittedObject<'a> {
    pub(crate) fn new(object: &'a mut Object) -> Self {
        Self {
            object,
            is_touched: false,
        }
    }

    /// Whether the object may have been changed.
    pub(crate) fn is_touched(&self) -> bool {
        self.is_touched
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
        self.is_touched = true;
        self.object
    }
}

impl AdmissionRequest<'_> {
    /// Whether the request is for this kind, in any version.
    pub fn is<K: Resource>(&self) -> bool {
        self.resource.group == K::GROUP && self.resource.resource == K::PLURAL
    }
    /// A refusal: 403 `flunders.wardle.example.com "NAME" is forbidden: WHY`.
    pub fn forbidden(&self, why: &str) -> ApiError {
        ApiError::forbidden(self.resource, self.refused_name(), why)
    }
    /// The name that a refusal gives: the request's, else the object's, else what its name will begin with.
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
pub struct AdmissionContext {
    kinds: BTreeMap<GroupResource, Arc<Kind>>,
    made: Mutex<Made>,
}

/// What was asked for, and could not be given.
#[derive(Default)]
struct Made {
    listers: BTreeMap<(GroupResource, &'static str), Arc<ListerCore>>,
    problems: Vec<String>,
}

impl AdmissionContext {
    pub(crate) fn new(kinds: BTreeMap<GroupResource, Arc<Kind>>) -> Self {
        Self {
            kinds,
            made: Mutex::default(),
        }
    }

    /// All objects of a kind, kept in memory. Plugins that ask for the same kind share one copy. A kind that is not
    /// registered is a problem that [`crate::registry::catalog::builder::RegistryBuilder::build`] reports.
    pub fn lister<K: Resource>(&self) -> Lister<K> {
        let mut made = self.made.lock();
        let resource = GroupResource::new(K::GROUP, K::PLURAL);
        let id = (resource.clone(), K::VERSION);
        if let Some(core) = made.listers.get(&id) {
            return Lister::new(Arc::clone(core));
        }
        let kind = self.kinds.get(&resource);
        let version = kind.and_then(|kind| {
            kind.versions
                .iter()
                .position(|v| v.def.version == K::VERSION)
        });
        let core = match (kind, version) {
            (Some(kind), Some(version)) => {
                Arc::new(ListerCore::new::<K>(Arc::clone(kind), version))
            }
            _ => {
                let problem = format!(
                    "an admission plugin lists {} {}/{}, which is not registered",
                    K::KIND,
                    K::GROUP,
                    K::VERSION
                );
                made.problems
                    .push(located([K::definition().place], problem));
                return Lister::new(Arc::new(ListerCore::unregistered()));
            }
        };
        made.listers.insert(id, Arc::clone(&core));
        Lister::new(core)
    }

    /// The listers that were asked for and the problems met.
    pub(crate) fn finish(self) -> (Vec<Arc<ListerCore>>, Vec<String>) {
        let made = self.made.into_inner();
        (made.listers.into_values().collect(), made.problems)
    }
}

/// The enabled plugins in order.
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

    /// The mutating phase.
    pub(crate) async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        for plugin in &self.plugins {
            let judged = plugin.mutate(request).await;
            judged.map_err(|error| refusal(request, error))?;
        }
        Ok(())
    }

    /// The validating phase.
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

/// An error that does not say what it is becomes a refusal; every other one is passed on as the plugin made it.
fn refusal(request: &AdmissionRequest<'_>, error: ApiError) -> ApiError {
    if error.reason.is_some() {
        error
    } else {
        request.forbidden(&error.message)
    }
}
