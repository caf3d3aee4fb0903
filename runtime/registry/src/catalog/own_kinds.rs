//! Kinds that the server itself brings, beside those of its program: Kubernetes' own kinds, which are registered here by the
//! crate that has them.

use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::kind::{Resource, ResourceDef, SubresourceDef};
use apiloom_meta::{GroupResource, GroupVersionKind};

use super::builder::RegistryBuilder;
use super::kinds::VersionStrategy;
use crate::objects::hooks::ErasedStrategy;
use crate::rules::definition_room::DefinitionRoom;
use crate::rules::strategy::{Strategy, TypedStrategy};

impl RegistryBuilder {
    /// Registers one version of a kind of the server itself, with its rules, as a lazy kind. A kind of the program that has
    /// its names is an error of [`RegistryBuilder::build`], and errors show no source location of it. Returns whether it was
    /// registered now: doing so twice is the same as once.
    pub fn own_kind<K: Resource>(&mut self, strategy: impl Strategy<K>) -> bool {
        self.own_kind_with::<K>(Box::new(TypedStrategy::<K, _>::new(strategy)))
    }
    /// As [`RegistryBuilder::own_kind`], with rules that see objects in place of values of the type.
    pub fn own_kind_with<K: Resource>(&mut self, strategy: Box<dyn ErasedStrategy>) -> bool {
        let def = K::definition();
        let schema = def.schema.clone().lazy();
        self.add_own::<K>(ResourceDef { schema, ..def }, strategy)
    }
    /// Adds a subresource to a kind of the server itself that is registered, for parts with the code of one that other servers do not have.
    /// Returns whether it was added now: the kind must be there, and doing so twice is the same as once.
    pub fn own_subresource<K: Resource>(&mut self, subresource: SubresourceDef) -> bool {
        let id = GroupVersionKind::new(K::GROUP, K::VERSION, K::KIND);
        let Some(kind) = self.own.iter_mut().find(|kind| kind.gvk() == id) else {
            return false;
        };
        let all = &mut Arc::make_mut(kind).subresources;
        let is_new = all.iter().all(|one| one.name != subresource.name);
        if is_new {
            all.push(subresource);
        }
        is_new
    }
    /// Registers the kind of namespaces, with its rules, as a kind of the server itself. The server creates the namespace
    /// `default`, and those of [`RegistryBuilder::system_namespaces`]. A registry without such a kind has no namespaces, and
    /// its namespaced kinds accept any.
    pub fn namespace_kind<K: Resource>(&mut self, strategy: impl Strategy<K>) -> bool {
        let strategy = Box::new(TypedStrategy::<K, _>::new(strategy));
        let is_new = self.add_own::<K>(K::definition(), strategy);
        self.namespaces = Some(GroupResource::new(K::GROUP, K::PLURAL));
        is_new
    }
    /// Sets the kind of the bodies of the subresource `scale`. Without one, kinds with that subresource are errors of
    /// [`RegistryBuilder::build`].
    pub fn scale_kind<K: Resource>(&mut self) {
        self.scale = Some(own_kind(K::definition()));
    }
    /// For how long events are kept after their last write; `None` for ever.
    pub fn event_lifetime(&self) -> Option<Duration> {
        self.event_ttl
    }
    /// The memory that all definitions share.
    pub fn definition_room(&self) -> Arc<DefinitionRoom> {
        Arc::clone(&self.definition_room)
    }
    /// Adds a kind of the server itself, unless it is there.
    fn add_own<K: Resource>(
        &mut self,
        def: ResourceDef,
        strategy: Box<dyn ErasedStrategy>,
    ) -> bool {
        let is_new = !self.own.iter().any(|own| own.gvk() == def.gvk());
        if is_new {
            self.own.push(own_kind(def));
            self.strategies
                .push(VersionStrategy::of::<K>("strategy", strategy));
        }
        is_new
    }
}

/// A kind of the server's own, without its source location: errors about users' kinds should not show files of this
/// repository.
fn own_kind(def: ResourceDef) -> Arc<ResourceDef> {
    Arc::new(ResourceDef { place: None, ..def })
}
