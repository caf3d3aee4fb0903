//! Validates the object of a write: metadata, schema and strategy. The version of the request is validated first, so that
//! errors have the paths that the client sent. The hub's schema applies to every version, but only to objects that are
//! valid by the schema of the request's version.

use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, FieldError, Object, validation};

use super::Writes;
use super::draft::{Draft, HubObject, put_metadata};
use crate::registry::objects::hooks::ErasedStrategy;
use crate::registry::options::RequestContext;

impl Writes {
    /// Validates a new object.
    pub(crate) fn validate_create(
        &self,
        ctx: &RequestContext,
        object: &Object,
        draft: Result<Draft, ApiError>,
    ) -> Result<Draft, ApiError> {
        let def = self.resource.def();
        // An object that is not stored needs no name.
        let metadata = if def.has_store {
            validation::validate_create(object, def.scope, def.name_format)
        } else {
            Vec::new()
        };
        let schema = self.resource.schema().validate(object.as_value());
        let errors = VersionErrors::new(metadata, schema);
        self.validate_draft(ctx, object, None, draft, errors, |strategy, object, _| {
            strategy.validate(ctx, object)
        })
    }

    /// Validates an update.
    pub(crate) fn validate_update(
        &self,
        ctx: &RequestContext,
        new: &Object,
        old: &Object,
        draft: Result<Draft, ApiError>,
    ) -> Result<Draft, ApiError> {
        let metadata = validation::validate_update(new, old);
        let errors =
            VersionErrors::new(metadata, validate_change(self.resource.schema(), new, old));
        self.validate_draft(
            ctx,
            new,
            Some(old),
            draft,
            errors,
            |strategy, new, old| match old {
                Some(old) => strategy.validate_update(ctx, new, old),
                None => strategy.validate(ctx, new),
            },
        )
    }

    /// Validates an object with the hub's schema and the strategy, if it is valid by the schema of the request's version.
    fn validate_draft(
        &self,
        ctx: &RequestContext,
        new: &Object,
        old: Option<&Object>,
        draft: Result<Draft, ApiError>,
        VersionErrors {
            mut errors,
            is_schema_valid,
        }: VersionErrors,
        hook: impl FnOnce(
            &dyn ErasedStrategy,
            &Object,
            Option<&Object>,
        ) -> Result<Vec<FieldError>, String>,
    ) -> Result<Draft, ApiError> {
        if !is_schema_valid {
            return Err(self.invalid(new, &errors));
        }
        let mut draft = match draft {
            Err(_) if !errors.is_empty() => return Err(self.invalid(new, &errors)),
            draft => draft?,
        };
        let hub = draft.hub.as_mut();
        let hub_errors = hub.map(|hub| self.validate_in_hub(hub, new));
        let hub_errors = hub_errors.unwrap_or_default();
        if hub_errors.is_empty() {
            let hub = draft.hub.as_ref();
            errors.extend(self.validate_by_strategy(new, old, hub, hook)?);
        }
        errors.extend(hub_errors);
        if !errors.is_empty() {
            return Err(self.invalid(new, &errors));
        }
        self.warn(ctx, new, draft.hub.as_ref());
        Ok(draft)
    }

    /// Adds the warnings of the strategy to the response.
    fn warn(&self, ctx: &RequestContext, new: &Object, hub: Option<&HubObject>) {
        let Some((version, strategy)) = self.resource.kind.strategy(self.resource.version) else {
            return;
        };
        let object = hub
            .filter(|_| version != self.resource.version)
            .map_or(new, |hub| &hub.new);
        strategy
            .warnings(ctx, object)
            .into_iter()
            .for_each(|text| ctx.warn(text));
    }

    /// Validates the object in the hub with the hub's schema.
    fn validate_in_hub(&self, hub: &mut HubObject, object: &Object) -> Vec<FieldError> {
        put_metadata(&mut hub.new, object);
        let schema = self.resource.kind.versions[self.resource.kind.hub].schema();
        match &hub.old {
            Some(old) => validate_change(schema, &hub.new, old),
            None => schema.validate(hub.new.as_value()),
        }
    }

    /// Validates an object with the strategy of this version or, if it has none, of the hub.
    fn validate_by_strategy(
        &self,
        new: &Object,
        old: Option<&Object>,
        hub: Option<&HubObject>,
        hook: impl FnOnce(
            &dyn ErasedStrategy,
            &Object,
            Option<&Object>,
        ) -> Result<Vec<FieldError>, String>,
    ) -> Result<Vec<FieldError>, ApiError> {
        let Some((version, strategy)) = self.resource.kind.strategy(self.resource.version) else {
            return Ok(Vec::new());
        };
        let result = match hub.filter(|_| version != self.resource.version) {
            Some(hub) => hook(strategy, &hub.new, hub.old.as_ref()),
            None => hook(strategy, new, old),
        };
        result.map_err(|text| {
            self.cannot_handle(
                &self.resource.def().kind,
                &self.resource.def().version,
                &text,
            )
        })
    }

    fn invalid(&self, object: &Object, errors: &[FieldError]) -> ApiError {
        ApiError::invalid(&self.resource.kind.group_kind, object.name(), errors)
    }
}

/// Validates an update with a schema.
fn validate_change(schema: &Schema, new: &Object, old: &Object) -> Vec<FieldError> {
    schema.validate_update(new.as_value(), old.as_value())
}

/// The errors of an object in the version of the request.
struct VersionErrors {
    errors: Vec<FieldError>,
    /// Whether the schema has no errors.
    is_schema_valid: bool,
}

impl VersionErrors {
    /// The errors of the metadata and those of the schema.
    fn new(mut metadata: Vec<FieldError>, schema: Vec<FieldError>) -> Self {
        let is_schema_valid = schema.is_empty();
        metadata.extend(schema);
        Self {
            errors: metadata,
            is_schema_valid,
        }
    }
}
