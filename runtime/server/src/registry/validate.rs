//! Whether an object may be written: metadata, schema and the kind's rules, all in the version of the request so that
//! every path is one that the client wrote.

use apiloom_meta::{ApiError, FieldError, Object, validation};

use super::RequestContext;
use super::endpoint::Endpoint;
use super::kind::Kind;
use super::strategy::ErasedStrategy;

impl Endpoint {
    /// Judges an object about to be created.
    pub(super) fn validate_create(
        &self,
        ctx: &RequestContext,
        object: &mut Object,
    ) -> Result<(), ApiError> {
        let mut errors =
            validation::validate_create(object, self.kind.scope, self.def().name_format);
        let broken = Kind::with_value(object, |value| self.schema().validate(value));
        let well_formed = broken.is_empty();
        errors.extend(broken);
        if well_formed {
            errors.extend(self.judge(object, None, |strategy, object, _| {
                strategy.validate(ctx, object)
            })?);
        }
        self.refuse_invalid(object, &errors)
    }

    /// Judges a change.
    pub(super) fn validate_update(
        &self,
        ctx: &RequestContext,
        new: &mut Object,
        old: &mut Object,
    ) -> Result<(), ApiError> {
        let mut errors = validation::validate_update(new, old);
        let schema = self.schema();
        let broken = Kind::with_value(new, |new| {
            Kind::with_value(old, |old| schema.validate_update(new, old))
        });
        let well_formed = broken.is_empty();
        errors.extend(broken);
        if well_formed {
            let judged = self.judge(new, Some(old), |strategy, new, old| match old {
                Some(old) => strategy.validate_update(ctx, new, old),
                None => strategy.validate(ctx, new),
            });
            errors.extend(judged?);
        }
        self.refuse_invalid(new, &errors)
    }

    /// Asks the rules that apply to this version, on objects converted to theirs.
    fn judge(
        &self,
        new: &Object,
        old: Option<&Object>,
        ask: impl FnOnce(
            &dyn ErasedStrategy,
            &Object,
            Option<&Object>,
        ) -> Result<Vec<FieldError>, String>,
    ) -> Result<Vec<FieldError>, ApiError> {
        let Some((judge, strategy)) = self.kind.strategy(self.version) else {
            return Ok(Vec::new());
        };
        let judged = if judge == self.version {
            ask(strategy, new, old)
        } else {
            let new = self.kind.convert(new.clone(), self.version, judge)?;
            // An old object that cannot be converted must not stand in the way of its repair.
            let old = old.and_then(|old| self.kind.convert(old.clone(), self.version, judge).ok());
            ask(strategy, &new, old.as_ref())
        };
        judged.map_err(|text| self.cannot_handle(self.def().kind, self.def().version, &text))
    }

    fn refuse_invalid(&self, object: &Object, errors: &[FieldError]) -> Result<(), ApiError> {
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid(
                &self.kind.group_kind,
                object.name(),
                errors,
            ))
        }
    }
}
