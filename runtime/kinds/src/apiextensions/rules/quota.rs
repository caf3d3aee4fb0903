//! The admission plugin DefinitionQuota: refuses definitions for which there is no room beside the others.

use std::sync::Arc;

use apiloom_meta::schema::structural::{Footprint, MAX_FOOTPRINT};
use apiloom_meta::{ApiError, Object};
use apiloom_registry::{Admission, AdmissionRequest, DefinitionRoom, Operation};
use async_trait::async_trait;

use super::strategy::schemas;
use crate::apiextensions::v1::CustomResourceDefinition;

/// Refuses definitions that are too large, and those for which there is no room.
pub(super) struct DefinitionQuota(pub(super) Arc<DefinitionRoom>);

#[async_trait]
impl Admission for DefinitionQuota {
    fn name(&self) -> &'static str {
        "DefinitionQuota"
    }

    /// In the phase before validation, which compiles the rules of the schemas.
    async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        let is_of_schemas = request.is::<CustomResourceDefinition>()
            && request.subresource.is_empty()
            && matches!(request.operation, Operation::Create | Operation::Update);
        let Some(object) = request.object.as_deref().filter(|_| is_of_schemas) else {
            return Ok(());
        };
        let old = request.old_object;
        // Also what an earlier release has stored.
        if old.is_some_and(|old| schemas(old).eq(schemas(object))) {
            return Ok(());
        }
        // One that is too large by itself is refused by validation, which says what is too large.
        let bytes = footprint(object);
        if bytes > MAX_FOOTPRINT {
            return Ok(());
        }
        let reserve = || self.0.reserve(object.name(), bytes);
        match request.ctx.reserve(reserve) {
            // What does not grow is allowed, also beyond the bound.
            Err(full) if old.is_none_or(|old| bytes > footprint(old)) => {
                Err(request.forbidden(&full.message()))
            }
            _ => Ok(()),
        }
    }
}

/// The memory of the schemas of a definition.
fn footprint(definition: &Object) -> usize {
    let mut footprint = Footprint::default();
    schemas(definition).for_each(|schema| footprint.count(schema));
    footprint.bytes()
}
