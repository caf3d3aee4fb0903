//! Per-kind rules that a user writes: the typed hooks of create, update and delete.

use std::marker::PhantomData;

use apiloom_meta::codec::{Format, decode_value};
use apiloom_meta::schema::merge_difference;
use apiloom_meta::{FieldError, Object, Resource};
use serde_json::Value;

use crate::registry::options::RequestContext;

/// Rules of one kind in one version. Every hook has a default that does nothing.
///
/// The typed object is decoded only for hooks; what a hook changes is put back into the document as a difference, so
/// nothing that the type does not know is lost.
pub trait Strategy<K: Resource>: Send + Sync + 'static {
    /// Whether [`default`](Strategy::default) does anything. Default true. Rules that say `false` are not asked for
    /// defaults, so that objects of the kind are served as the bytes that are stored, without being decoded: starts, lists
    /// and what other servers write cost what they cost for a kind without rules.
    const HAS_DEFAULTS: bool = true;

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

/// A [`Strategy`] over documents. The hooks that change an object say whether they did, and leave alone a document that
/// does not have the type's shape: the validation that follows names what is wrong with it.
pub(crate) trait ErasedStrategy: Send + Sync {
    /// See [`Strategy::HAS_DEFAULTS`].
    fn has_defaults(&self) -> bool;
    fn default(&self, object: &mut Object) -> bool;
    fn prepare_for_create(&self, ctx: &RequestContext, object: &mut Object) -> bool;
    fn prepare_for_update(&self, ctx: &RequestContext, new: &mut Object, old: &Object) -> bool;
    /// The error is the decoder's text when the document does not have the type's shape.
    fn validate(&self, ctx: &RequestContext, object: &Object) -> Result<Vec<FieldError>, String>;
    /// As [`ErasedStrategy::validate`]; an old object that is not of today's shape does not stand in the way.
    fn validate_update(
        &self,
        ctx: &RequestContext,
        new: &Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, String>;
    fn warnings(&self, ctx: &RequestContext, object: &Object) -> Vec<String>;
}

/// The bridge from documents to a typed strategy.
pub(crate) struct Typed<K, S> {
    strategy: S,
    kind: PhantomData<fn() -> K>,
}

impl<K, S> Typed<K, S> {
    pub(crate) fn new(strategy: S) -> Self {
        Self {
            strategy,
            kind: PhantomData,
        }
    }
}

impl<K: Resource, S: Strategy<K>> ErasedStrategy for Typed<K, S> {
    fn has_defaults(&self) -> bool {
        S::HAS_DEFAULTS
    }
    fn default(&self, object: &mut Object) -> bool {
        edit(object, |typed: &mut K| self.strategy.default(typed))
    }
    fn prepare_for_create(&self, ctx: &RequestContext, object: &mut Object) -> bool {
        edit(object, |typed: &mut K| {
            self.strategy.prepare_for_create(ctx, typed);
        })
    }
    fn prepare_for_update(&self, ctx: &RequestContext, new: &mut Object, old: &Object) -> bool {
        let Ok(old) = typed::<K>(old) else {
            return false;
        };
        edit(new, |typed: &mut K| {
            self.strategy.prepare_for_update(ctx, typed, &old);
        })
    }
    fn validate(&self, ctx: &RequestContext, object: &Object) -> Result<Vec<FieldError>, String> {
        let typed = typed::<K>(object).map_err(|e| e.to_string())?;
        Ok(self.strategy.validate(ctx, &typed))
    }
    fn validate_update(
        &self,
        ctx: &RequestContext,
        new: &Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, String> {
        let new = typed::<K>(new).map_err(|e| e.to_string())?;
        Ok(match typed::<K>(old) {
            Ok(old) => self.strategy.validate_update(ctx, &new, &old),
            Err(_) => self.strategy.validate(ctx, &new),
        })
    }
    fn warnings(&self, ctx: &RequestContext, object: &Object) -> Vec<String> {
        object
            .to_typed::<K>()
            .map(|typed| self.strategy.warnings(ctx, &typed))
            .unwrap_or_default()
    }
}

/// The typed object, read from the document in place.
pub(crate) fn typed<K: Resource>(object: &Object) -> Result<K, serde_json::Error> {
    K::deserialize(object.fields())
}

/// Runs a change of the typed object and puts the difference into the document. Most hooks change nothing on most
/// objects, which the bytes tell at less cost than documents.
fn edit<K: Resource>(object: &mut Object, change: impl FnOnce(&mut K)) -> bool {
    let Ok(mut typed) = typed::<K>(object) else {
        return false;
    };
    let before = serde_json::to_vec(&typed);
    change(&mut typed);
    let (Ok(before), Ok(after)) = (before, serde_json::to_vec(&typed)) else {
        return false;
    };
    if before == after {
        return false;
    }
    match (
        decode_value(&before, Format::Json),
        serde_json::to_value(&typed),
    ) {
        (Ok(Value::Object(before)), Ok(Value::Object(after))) if before != after => {
            merge_difference(None, object.fields_mut(), &before, after);
            true
        }
        _ => false,
    }
}
