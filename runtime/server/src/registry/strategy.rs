//! Per-kind rules that a user writes: the typed hooks of create, update and delete.

use apiloom_meta::{FieldError, Resource};

use super::RequestContext;

/// Rules of one kind in one version. Every hook has a default that does nothing.
///
/// The typed object is decoded only for hooks; what a hook changes is put back into the document as a difference, so
/// nothing that the type does not know is lost.
pub trait Strategy<K: Resource>: Send + Sync + 'static {
    /// Fills in what the client left out, after the schema's defaults. Runs on objects from clients and from storage, so
    /// it must be deterministic and must not change what is set.
    fn default(&self, _object: &mut K) {}
    /// Prepares a new object before it is validated.
    fn prepare_for_create(&self, _ctx: &RequestContext, _object: &mut K) {}
    /// Prepares a changed object before it is validated.
    fn prepare_for_update(&self, _ctx: &RequestContext, _new: &mut K, _old: &K) {}
    /// Judges an object that is about to be created.
    fn validate(&self, _ctx: &RequestContext, _object: &K) -> Vec<FieldError> {
        Vec::new()
    }
    /// Judges a change; by default the new object alone is judged as on create.
    fn validate_update(&self, ctx: &RequestContext, new: &K, _old: &K) -> Vec<FieldError> {
        self.validate(ctx, new)
    }
    /// Texts to warn the client with after a successful create or update.
    fn warnings(&self, _ctx: &RequestContext, _object: &K) -> Vec<String> {
        Vec::new()
    }
}
