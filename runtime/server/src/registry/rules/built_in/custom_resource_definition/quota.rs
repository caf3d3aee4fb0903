//! The admission plugin DefinitionQuota: refuses definitions for which there is no room beside the others.

use std::sync::Arc;

use apiloom_apis::apiextensions::v1::CustomResourceDefinition;
use apiloom_meta::schema::structural::{Footprint, MAX_FOOTPRINT};
use apiloom_meta::{ApiError, Object};
use async_trait::async_trait;

use super::strategy::schemas;
use crate::registry::rules::admission::{Admission, AdmissionRequest, Operation};
use crate::registry::rules::definition_room::DefinitionRoom;

/// Refuses definitions for which there is no room.
pub(in crate::registry) struct DefinitionQuota(pub(in crate::registry) Arc<DefinitionRoom>);

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
        let schemas = footprint(object);
        // One that is too large by itself is refused by validation, which says what is too large.
        if schemas > MAX_FOOTPRINT {
            return Ok(());
        }
        // What does not grow is allowed, also beyond the bound.
        if request
            .old_object
            .is_some_and(|old| schemas <= footprint(old))
        {
            return Ok(());
        }
        let fits = self.0.check(object.name(), schemas);
        fits.map_err(|full| request.forbidden(&full.message()))
    }
}

/// The memory of the schemas of a definition.
fn footprint(definition: &Object) -> usize {
    let mut footprint = Footprint::default();
    schemas(definition).for_each(|schema| footprint.count(schema));
    footprint.bytes()
}
