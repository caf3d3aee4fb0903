//! Strategies: per-kind rules of a user, as typed hooks of create, update and delete.

use std::marker::PhantomData;
use std::time::Duration;

use apiloom_meta::edit;
use apiloom_meta::schema::Schema;
use apiloom_meta::{FieldError, Object, Resource};

use crate::objects::hooks::ErasedStrategy;
use crate::options::RequestContext;

/// Rules of one kind in one version. By default all hooks do nothing.
///
/// The object is decoded once for all hooks of a write, and again only if other code (a default of the schema, an admission
/// plugin) changes a field in between. Changes of a hook are applied to the document as a difference, so fields that the
/// type does not have are kept.
pub trait Strategy<K: Resource>: Send + Sync + 'static {
    /// Whether [`default`](Strategy::default) may change an object; `true` by default. With `false` it is never called, and
    /// stored objects of the kind are served without decoding them: a start, a list from the store and a write of another
    /// server need as much CPU as for a kind without a strategy.
    const HAS_DEFAULTS: bool = true;

    /// Sets default values, after those of the schema. Called for objects from clients and from storage, so it must be
    /// deterministic and must not change fields that are set.
    fn default(&self, _object: &mut K) {}
    /// Prepares a new object before it is validated.
    fn prepare_for_create(&self, _ctx: &RequestContext, _object: &mut K) {}
    /// Prepares a changed object before it is validated.
    fn prepare_for_update(&self, _ctx: &RequestContext, _new: &mut K, _old: &K) {}
    /// Whether [`prepare_for_delete`](Strategy::prepare_for_delete) may change an object; `false` by default. With `true` an
    /// object is decoded when its deletion begins.
    const PREPARES_DELETE: bool = false;
    /// Prepares an object whose deletion begins. A finalizer that is added keeps it until a controller removes that; such an
    /// object is marked with the time alone, without a grace period, another generation and the finalizers that the request
    /// asks for, as kube-apiserver does with definitions. Called for objects in the storage version; not for kinds with `deletion(finalizers = ..)`.
    fn prepare_for_delete(&self, _ctx: &RequestContext, _object: &mut K) {}
    /// Validates a new object.
    fn validate(&self, _ctx: &RequestContext, _object: &K) -> Vec<FieldError> {
        Vec::new()
    }
    /// Validates an update. Calls [`validate`](Strategy::validate) with the new object by default.
    fn validate_update(&self, ctx: &RequestContext, new: &K, _old: &K) -> Vec<FieldError> {
        self.validate(ctx, new)
    }
    /// How long the store keeps an object after its last write, as kube-apiserver's `TTLFunc`; `None`, the default, for
    /// as long as it is not deleted. An expired object is removed as by a delete. Only the strategy of the request's
    /// version is asked, or that of the hub if the version has none.
    fn ttl(&self) -> Option<Duration> {
        None
    }
    /// Warnings about a valid object, as kube-apiserver's `WarningsOnCreate` and `WarningsOnUpdate`. They are in the
    /// response even if an admission plugin or the store refuses the write afterwards.
    fn warnings(&self, _ctx: &RequestContext, _object: &K) -> Vec<String> {
        Vec::new()
    }
    /// The grace period of an object that is deleted, in seconds, as kube-apiserver's `CheckGracefulDelete` decides it;
    /// `None` for that of the definition. By default it is the `requested` one, if the request has one. With 0 the object
    /// is removed at once, after an update that watches show.
    ///
    /// Called only for kinds with `graceful_delete`, by the delete that begins the deletion: later ones can only shorten
    /// the period. Only the strategy of the request's version is asked, or that of the hub if the version has none.
    fn grace_seconds(
        &self,
        _ctx: &RequestContext,
        _object: &K,
        requested: Option<i64>,
    ) -> Option<i64> {
        requested
    }
}

/// Adapter from a typed strategy to [`ErasedStrategy`].
pub struct TypedStrategy<K, S> {
    strategy: S,
    kind: PhantomData<fn() -> K>,
}

impl<K, S> TypedStrategy<K, S> {
    /// The strategy `strategy` of the kind `K`, for objects of any type.
    pub fn new(strategy: S) -> Self {
        Self {
            strategy,
            kind: PhantomData,
        }
    }
}

impl<K: Resource, S: Strategy<K>> ErasedStrategy for TypedStrategy<K, S> {
    fn has_defaults(&self) -> bool {
        S::HAS_DEFAULTS
    }
    fn ttl(&self) -> Option<Duration> {
        self.strategy.ttl()
    }
    fn is_defaulted(&self, stored: &[u8], schema: &Schema) -> bool {
        edit::leaves_unchanged(stored, schema, |typed: &mut K| self.strategy.default(typed))
    }
    fn default(&self, object: &mut Object) -> bool {
        is_changed(object.edit(|typed: &mut K| self.strategy.default(typed)))
    }
    fn prepare_for_create(&self, ctx: &RequestContext, object: &mut Object) -> bool {
        is_changed(object.edit(|typed: &mut K| {
            self.strategy.prepare_for_create(ctx, typed);
        }))
    }
    fn prepare_for_update(&self, ctx: &RequestContext, new: &mut Object, old: &Object) -> bool {
        let Ok(old) = old.typed::<K>() else {
            return false;
        };
        is_changed(new.edit(|typed: &mut K| {
            self.strategy.prepare_for_update(ctx, typed, &old);
        }))
    }
    fn prepare_for_delete(&self, ctx: &RequestContext, object: &mut Object) {
        if S::PREPARES_DELETE {
            // An object that cannot be decoded is deleted as it is.
            let _ = object.edit(|typed: &mut K| self.strategy.prepare_for_delete(ctx, typed));
        }
    }
    fn prepares_delete(&self) -> bool {
        S::PREPARES_DELETE
    }
    fn validate(&self, ctx: &RequestContext, object: &Object) -> Result<Vec<FieldError>, String> {
        let typed = object.typed::<K>().map_err(|e| e.to_string())?;
        Ok(self.strategy.validate(ctx, &typed))
    }
    fn validate_update(
        &self,
        ctx: &RequestContext,
        new: &Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, String> {
        let new = new.typed::<K>().map_err(|e| e.to_string())?;
        Ok(match old.typed::<K>() {
            Ok(old) => self.strategy.validate_update(ctx, &new, &old),
            Err(_) => self.strategy.validate(ctx, &new),
        })
    }
    fn warnings(&self, ctx: &RequestContext, object: &Object) -> Vec<String> {
        object
            .typed::<K>()
            .map(|typed| self.strategy.warnings(ctx, &typed))
            .unwrap_or_default()
    }
    fn grace_seconds(
        &self,
        ctx: &RequestContext,
        object: &Object,
        requested: Option<i64>,
    ) -> Option<i64> {
        match object.typed::<K>() {
            Ok(typed) => self.strategy.grace_seconds(ctx, &typed, requested),
            Err(_) => requested,
        }
    }
}

/// Whether a hook changed an object. After an error (the object cannot be decoded, or the changed value cannot be
/// serialized) it is unchanged, and the validation after the hook reports its errors.
fn is_changed(edited: Result<bool, serde_json::Error>) -> bool {
    edited.unwrap_or(false)
}
