//! What create, get, list, watch, update, patch and delete mean, written once over the erased object.
//!
//! Knows no HTTP: errors carry a reason, warnings are collected in the request context. A kind contributes data
//! ([`apiloom_meta::ResourceDef`]) and hooks ([`Strategy`]); adding one costs no new copy of this code.

mod admission;
mod endpoint;
mod lister;
mod options;
mod strategy;

use std::sync::Arc;

pub use admission::{Admission, AdmissionContext, AdmissionRequest, Operation};
use apiloom_storage::Storage;
pub use endpoint::{Deleted, Endpoint, Listed, WatchEvent, WatchEventKind, WatchEvents};
pub use lister::Lister;
pub use options::{
    CreateOptions, DeleteOptions, FieldValidation, GetOptions, ListOptions, PatchOptions, Preconditions, PropagationPolicy,
    RequestContext, UpdateOptions, UserInfo, VersionMatch,
};
pub use strategy::Strategy;

/// Every resource of a server over one store.
#[derive(Debug)]
pub struct Registry {}

impl Registry {
    /// Begins a registry over a store; the [`RegistryBuilder`] reports every problem at once.
    pub fn builder(_storage: Arc<dyn Storage>) -> RegistryBuilder {
        todo!()
    }
    /// The resource at a path, in the version asked for. `None` for what is not served.
    pub fn endpoint(&self, _group: &str, _version: &str, _plural: &str) -> Option<&Arc<Endpoint>> {
        todo!()
    }
    /// Every served resource, in order of registration; what discovery and OpenAPI read.
    pub fn endpoints(&self) -> &[Arc<Endpoint>] {
        todo!()
    }
    /// The groups in order of registration, core first; each with its served versions in order of preference.
    pub fn groups(&self) -> &[ServedGroup] {
        todo!()
    }
    /// Fills caches, makes the `default` namespace, and returns when reads may begin.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn start(&self) -> Result<(), apiloom_storage::StorageError> {
        todo!()
    }
}

/// A group and its served versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedGroup {
    /// The group's name; empty for core.
    pub name: String,
    /// Served versions, preferred first.
    pub versions: Vec<String>,
    /// The release that lifecycles compare with.
    pub release: Option<apiloom_meta::kind::Release>,
}

/// An unfinished [`Registry`].
pub struct RegistryBuilder {}

impl RegistryBuilder {
    /// Declares a group: its versions in order of preference, its release.
    pub fn group(&mut self, _group: apiloom_meta::GroupDef) {
        todo!()
    }
    /// Registers a kind of one version. A kind of several versions is registered once per version.
    pub fn kind<K: apiloom_meta::Resource>(&mut self) {
        todo!()
    }
    /// Registers rules for a kind of one version. A version's own strategy is used for requests in that version; a
    /// version without one is judged by the hub's, on the converted object.
    pub fn strategy<K: apiloom_meta::Resource>(&mut self, _strategy: impl Strategy<K>) {
        todo!()
    }
    /// Registers an admission plugin; plugins run in order of registration, after NamespaceLifecycle.
    pub fn admission(&mut self, _make: impl FnOnce(&AdmissionContext) -> Box<dyn Admission>) {
        todo!()
    }
    /// Leaves out admission plugins by name; an unknown name is an error of [`RegistryBuilder::build`].
    pub fn disable_admission(&mut self, _names: &[String]) {
        todo!()
    }
    /// Leaves out versions or resources, as `--runtime-config` says (`group/version=false`, `group/version/resource=false`, `api/all=false`).
    pub fn runtime_config(&mut self, _settings: &[(String, bool)]) {
        todo!()
    }
    /// Replaces the source of generated name suffixes; for tests.
    pub fn name_source(&mut self, _source: impl Fn() -> String + Send + Sync + 'static) {
        todo!()
    }
    /// Checks everything together.
    ///
    /// # Errors
    /// One line for every problem: two storage versions, no hub, a spoke of an unknown hub, a schema that is not
    /// structural, a column or selectable field that the schema does not know, an unknown plugin name.
    pub fn build(self) -> Result<Registry, Vec<String>> {
        todo!()
    }
}
