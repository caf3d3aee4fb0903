//! Whether an object may be written: metadata, schema and the kind's rules, first in the version of the request so that
//! paths are those that the client wrote. The hub's schema holds in every version; what the version of the request refused
//! is not judged by it again.

use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, FieldError, Object, validation};

use super::Writes;
use super::draft::{Draft, InHub, put_metadata};
use crate::registry::objects::kind::Kind;
use crate::registry::options::RequestContext;
use crate::registry::rules::strategy::ErasedStrategy;

impl Writes {
    /// Judges an object about to be created.
    pub(crate) fn validate_create(
        &self,
        ctx: &RequestContext,
        object: &mut Object,
        draft: Result<Draft, ApiError>,
    ) -> Result<Draft, ApiError> {
        let def = self.resource.def();
        // What is not stored needs no name.
        let metadata = if def.has_store {
            validation::validate_create(object, def.scope, def.name_format)
        } else {
            Vec::new()
        };
        let broken = Kind::with_value(object, |value| self.resource.schema().validate(value));
        let found = Found::new(metadata, broken);
        self.judge(object, None, draft, found, |strategy, object, _| {
            strategy.validate(ctx, object)
        })
    }

    /// Judges a change.
    pub(crate) fn validate_update(
        &self,
        ctx: &RequestContext,
        new: &mut Object,
        old: &mut Object,
        draft: Result<Draft, ApiError>,
    ) -> Result<Draft, ApiError> {
        let metadata = validation::validate_update(new, old);
        let found = Found::new(metadata, changed(self.resource.schema(), new, old));
        self.judge(
            new,
            Some(old),
            draft,
            found,
            |strategy, new, old| match old {
                Some(old) => strategy.validate_update(ctx, new, old),
                None => strategy.validate(ctx, new),
            },
        )
    }

    /// Lets the hub's schema and the strategy that applies judge an object that is well-formed in the version of the request.
    fn judge(
        &self,
        new: &Object,
        old: Option<&Object>,
        draft: Result<Draft, ApiError>,
        Found {
            mut errors,
            is_well_formed,
        }: Found,
        ask: impl FnOnce(
            &dyn ErasedStrategy,
            &Object,
            Option<&Object>,
        ) -> Result<Vec<FieldError>, String>,
    ) -> Result<Draft, ApiError> {
        if !is_well_formed {
            return Err(self.invalid(new, &errors));
        }
        let mut draft = match draft {
            Err(_) if !errors.is_empty() => return Err(self.invalid(new, &errors)),
            draft => draft?,
        };
        let hub = draft.hub.as_mut();
        let broken = hub.map(|hub| self.judge_in_hub(hub, new));
        let broken = broken.unwrap_or_default();
        if broken.is_empty() {
            let hub = draft.hub.as_ref();
            errors.extend(self.ask_strategy(new, old, hub, ask)?);
        }
        errors.extend(broken);
        if errors.is_empty() {
            Ok(draft)
        } else {
            Err(self.invalid(new, &errors))
        }
    }

    /// What the hub's schema refuses.
    fn judge_in_hub(&self, hub: &mut InHub, object: &Object) -> Vec<FieldError> {
        put_metadata(&mut hub.new, object);
        let schema = self.resource.kind.versions[self.resource.kind.hub].schema();
        match &mut hub.old {
            Some(old) => changed(schema, &mut hub.new, old),
            None => Kind::with_value(&mut hub.new, |new| schema.validate(new)),
        }
    }

    /// Asks the rules that apply to this version: its own or else the hub's.
    fn ask_strategy(
        &self,
        new: &Object,
        old: Option<&Object>,
        hub: Option<&InHub>,
        ask: impl FnOnce(
            &dyn ErasedStrategy,
            &Object,
            Option<&Object>,
        ) -> Result<Vec<FieldError>, String>,
    ) -> Result<Vec<FieldError>, ApiError> {
        let Some((version, strategy)) = self.resource.kind.strategy(self.resource.version) else {
            return Ok(Vec::new());
        };
        let judged = match hub.filter(|_| version != self.resource.version) {
            Some(hub) => ask(strategy, &hub.new, hub.old.as_ref()),
            None => ask(strategy, new, old),
        };
        judged.map_err(|text| {
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

/// What a schema refuses of a change.
fn changed(schema: &Schema, new: &mut Object, old: &mut Object) -> Vec<FieldError> {
    Kind::with_value(new, |new| {
        Kind::with_value(old, |old| schema.validate_update(new, old))
    })
}

/// What was found wrong with an object in the version of the request.
struct Found {
    errors: Vec<FieldError>,
    is_well_formed: bool,
}

impl Found {
    /// What is wrong with the metadata, and what the schema refuses.
    fn new(mut metadata: Vec<FieldError>, schema: Vec<FieldError>) -> Self {
        let is_well_formed = schema.is_empty();
        metadata.extend(schema);
        Self {
            errors: metadata,
            is_well_formed,
        }
    }
}
