//! The trait of type-erased strategies, by which the registry calls the rules of a kind.

use std::time::Duration;

use apiloom_meta::schema::Schema;
use apiloom_meta::{FieldError, Object};

use crate::options::RequestContext;

/// A type-erased [`Strategy`](crate::Strategy). Hooks that may change an object return whether they did. They do
/// not change a document that cannot be decoded as the type; the validation after them reports its errors.
pub trait ErasedStrategy: Send + Sync {
    /// See [`Strategy::HAS_DEFAULTS`](crate::Strategy::HAS_DEFAULTS).
    fn has_defaults(&self) -> bool;
    /// See [`Strategy::ttl`](crate::Strategy::ttl).
    fn ttl(&self) -> Option<Duration>;
    /// Whether [`Strategy::default`](crate::Strategy::default) would not change a stored object; `false` if the
    /// bytes cannot be decoded as the type directly.
    fn is_defaulted(&self, stored: &[u8], schema: &Schema) -> bool;
    /// See [`Strategy::default`](crate::Strategy::default).
    fn default(&self, object: &mut Object) -> bool;
    /// The structs that every object of the type has. A new object is compared with it, so managedFields do not name them.
    fn blank(&self) -> Object {
        Object::default()
    }
    /// See [`Strategy::prepare_for_create`](crate::Strategy::prepare_for_create).
    fn prepare_for_create(&self, ctx: &RequestContext, object: &mut Object) -> bool;
    /// See [`Strategy::prepare_for_update`](crate::Strategy::prepare_for_update).
    fn prepare_for_update(&self, ctx: &RequestContext, new: &mut Object, old: &Object) -> bool;
    /// As [`ErasedStrategy::validate_update`], for an update of the subresource `status`.
    ///
    /// # Errors
    /// As [`ErasedStrategy::validate`].
    fn validate_status(
        &self,
        ctx: &RequestContext,
        new: &Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, String> {
        self.validate_update(ctx, new, old)
    }
    /// See [`Strategy::PREPARES_DELETE`](crate::Strategy::PREPARES_DELETE).
    fn prepares_delete(&self) -> bool;
    /// See [`Strategy::prepare_for_delete`](crate::Strategy::prepare_for_delete).
    fn prepare_for_delete(&self, ctx: &RequestContext, object: &mut Object);
    /// See [`Strategy::validate`](crate::Strategy::validate).
    ///
    /// # Errors
    /// The message of the decoder if the document cannot be decoded as the type.
    fn validate(&self, ctx: &RequestContext, object: &Object) -> Result<Vec<FieldError>, String>;
    /// As [`ErasedStrategy::validate`]. If the old object cannot be decoded, the new one is validated as on create.
    ///
    /// # Errors
    /// As [`ErasedStrategy::validate`].
    fn validate_update(
        &self,
        ctx: &RequestContext,
        new: &Object,
        old: &Object,
    ) -> Result<Vec<FieldError>, String>;
    /// See [`Strategy::warnings`](crate::Strategy::warnings).
    fn warnings(&self, ctx: &RequestContext, object: &Object) -> Vec<String>;
    /// Warnings about an update, which are those about the new object unless a strategy compares it with the old one.
    fn update_warnings(&self, ctx: &RequestContext, new: &Object, _old: &Object) -> Vec<String> {
        self.warnings(ctx, new)
    }
    /// See [`Strategy::grace_seconds`](crate::Strategy::grace_seconds). Returns `requested` if the document
    /// cannot be decoded as the type.
    fn grace_seconds(
        &self,
        ctx: &RequestContext,
        object: &Object,
        requested: Option<i64>,
    ) -> Option<i64>;
}
