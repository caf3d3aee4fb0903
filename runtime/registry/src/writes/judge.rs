//! Validates the object of a write: metadata, schema and strategy. The version of the request is validated first, so that
//! errors have the paths that the client sent. The hub's schema applies to every version, but only to objects that are
//! valid by the schema of the request's version.

use std::sync::Arc;

use apiloom_meta::kind::{NameFormat, Writes as Writable};
use apiloom_meta::{ApiError, FieldError, FieldPath, GroupKind, GroupVersion, Object, validation};

use super::request::WriteRequest;
use super::versions::{Draft, HubObject, put_metadata};
use crate::objects::hooks::ErasedStrategy;
use crate::objects::scale::{ScaleFields, scale_errors};
use crate::objects::versioned_resource::VersionedResource;
use crate::options::RequestContext;

/// Validates the objects of a resource.
#[derive(Debug)]
pub(crate) struct Judge {
    resource: Arc<VersionedResource>,
}

impl Judge {
    pub(super) fn new(resource: Arc<VersionedResource>) -> Self {
        Self { resource }
    }

    /// Validates a new object.
    pub(crate) fn validate_create(
        &self,
        request: WriteRequest<'_>,
        object: &Object,
        draft: Result<Draft<'static>, ApiError>,
    ) -> Result<Draft<'static>, ApiError> {
        let def = self.resource.def();
        if let Some(refused) = self.refused_type(object, Vec::new())? {
            return Err(refused);
        }
        // An object that cannot be read again needs no name.
        let mut metadata = Vec::new();
        if self.resource.has_objects() {
            metadata = validation::validate_create(object, def.scope, def.name_format);
            metadata.extend(self.finalizer_errors(object));
        }
        let schema = &self.resource.version().version_schema;
        let schema = schema.validate(object.as_value(), None, &mut Vec::new());
        let errors = VersionErrors::new(
            metadata,
            schema,
            self.scale_errors(object, ScaleFields::All),
        );
        let draft = self.validate_draft(request, object, None, draft, errors)?;
        self.warn_of_finalizers(request.ctx, object, None);
        Ok(draft)
    }

    /// Validates an update of an object or of a subresource. Of a custom resource, an update of the status validates the
    /// rest of the object only by rules and list types, as in kube-apiserver.
    pub(crate) fn validate_update<'a>(
        &self,
        request: WriteRequest<'_>,
        new: &Object,
        old: &Object,
        draft: Result<Draft<'a>, ApiError>,
    ) -> Result<Draft<'a>, ApiError> {
        let of_update = validation::validate_update(new, old);
        // kube-apiserver validates the metadata of each update, and most kinds do it once more.
        let mut metadata =
            validation::validate_create(new, self.resource.kind.scope, NameFormat::PathSegment);
        metadata.extend(of_update.iter().cloned());
        if let Some(refused) = self.refused_type(new, metadata.clone())? {
            return Err(refused);
        }
        if self.resource.def().dialect.repeats_metadata_errors || self.resource.kind.is_own {
            metadata.extend(of_update);
        }
        metadata.extend(self.finalizer_errors(new));
        let schema = &self.resource.version().version_schema;
        let mut tolerated = Vec::new();
        let (schema, replicas) = match self.only_field(request.subresource) {
            Some(field) => (
                schema.validate_field(field, new.as_value(), old.as_value(), &mut tolerated),
                self.scale_errors(new, ScaleFields::Status),
            ),
            None => (
                schema.validate(new.as_value(), Some(old.as_value()), &mut tolerated),
                self.scale_errors(new, ScaleFields::All),
            ),
        };
        for violation in &tolerated {
            request.ctx.warn(violation.to_string());
        }
        let errors = VersionErrors::new(metadata, schema, replicas);
        let draft = self.validate_draft(request, new, Some(old), draft, errors)?;
        self.warn_of_finalizers(request.ctx, new, Some(old));
        Ok(draft)
    }

    /// The refusal of an object that has not the type of the request, where validation checks it, with other errors before those of the type.
    ///
    /// # Errors
    /// InternalError if it has no apiVersion.
    fn refused_type(
        &self,
        object: &Object,
        mut errors: Vec<FieldError>,
    ) -> Result<Option<ApiError>, ApiError> {
        let def = self.resource.def();
        let expected = [
            ("kind", object.kind(), &*def.kind),
            (
                "apiVersion",
                object.api_version(),
                self.resource.version().api_version.as_str(),
            ),
        ];
        let is_expected = expected
            .iter()
            .all(|(_, found, expected)| found == expected);
        if !def.dialect.validates_type || is_expected {
            return Ok(None);
        }
        let given = GroupVersion::parse(object.api_version())
            .filter(|_| !object.api_version().is_empty())
            .ok_or_else(|| {
                ApiError::internal(
                    "Object 'apiVersion' is missing in 'object has no apiVersion field'",
                )
            })?;
        let wrong = expected
            .into_iter()
            .filter(|(_, found, expected)| found != expected);
        errors.extend(wrong.map(|(field, found, expected)| {
            FieldError::invalid(
                &FieldPath::new(field),
                found,
                &format!("must be {expected}"),
            )
        }));
        let given = GroupKind::new(&given.group, object.kind());
        Ok(Some(ApiError::invalid(&given, object.name(), &errors)))
    }

    /// Warns of new finalizers without a domain, where objects may have them.
    fn warn_of_finalizers(&self, ctx: &RequestContext, new: &Object, old: Option<&Object>) {
        if self.resource.def().dialect.warns_of_finalizers {
            let warnings = validation::finalizer_warnings(new, old);
            warnings.into_iter().for_each(|text| ctx.warn(text));
        }
    }

    /// The only field to validate after a write by a subresource that writes no other.
    fn only_field(&self, subresource: &str) -> Option<&str> {
        let def = self.resource.def();
        if !def.dialect.validates_written_field {
            return None;
        }
        match &def.subresource(subresource)?.writes {
            Writable::Only(field) => Some(field),
            Writable::Nothing
            | Writable::Replicas(_)
            | Writable::WithMetadata(_)
            | Writable::Also(_) => None,
        }
    }

    /// Validates an object with the hub's schema and the strategy, if it is valid by the schema of the request's version.
    fn validate_draft<'a>(
        &self,
        request: WriteRequest<'_>,
        new: &Object,
        old: Option<&Object>,
        draft: Result<Draft<'a>, ApiError>,
        errors: VersionErrors,
    ) -> Result<Draft<'a>, ApiError> {
        let VersionErrors {
            mut errors,
            is_schema_valid,
        } = errors;
        let WriteRequest {
            ctx, subresource, ..
        } = request;
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
        let input = self.strategy_input(new, old, draft.hub.as_ref());
        if let Some(input) = input.as_ref().filter(|_| hub_errors.is_empty()) {
            let found = input.validate(ctx, subresource);
            errors.extend(found.map_err(|text| self.resource.unusable(&text))?);
        }
        errors.extend(hub_errors);
        if !errors.is_empty() {
            return Err(self.invalid(new, &errors));
        }
        if let Some(StrategyInput { strategy, new, old }) = input {
            let warnings = match old {
                Some(old) => strategy.update_warnings(ctx, new, old),
                None => strategy.warnings(ctx, new),
            };
            warnings.into_iter().for_each(|text| ctx.warn(text));
        }
        Ok(draft)
    }

    /// Validates the object in the hub with the hub's schema.
    fn validate_in_hub(&self, hub: &mut HubObject<'_>, object: &Object) -> Vec<FieldError> {
        put_metadata(&mut hub.new, object);
        let versions = &self.resource.kind.versions;
        let schema = &versions[versions.hub].version_schema;
        let validate = |old| schema.validate(hub.new.as_value(), old, &mut Vec::new());
        // Without such rules the present object only excuses errors.
        if !schema.has_update_rules() && validate(None).is_empty() {
            return Vec::new();
        }
        validate(hub.old.get().map(Object::as_value))
    }

    /// The strategy of this version or, if it has none, of the hub, with the objects that it reads.
    fn strategy_input<'a>(
        &'a self,
        new: &'a Object,
        old: Option<&'a Object>,
        hub: Option<&'a HubObject<'_>>,
    ) -> Option<StrategyInput<'a>> {
        let versions = &self.resource.kind.versions;
        let (version, strategy) = versions.strategy(self.resource.version)?;
        let (new, old) = match hub.filter(|_| version != self.resource.version) {
            Some(hub) => (&hub.new, hub.old.get()),
            None => (new, old),
        };
        Some(StrategyInput { strategy, new, old })
    }

    /// The errors of finalizers without a domain, where objects may not have them.
    fn finalizer_errors(&self, object: &Object) -> Vec<FieldError> {
        if self.resource.def().dialect.warns_of_finalizers {
            return Vec::new();
        }
        validation::unqualified_finalizer_errors(object)
    }

    /// The errors of the numbers of replicas, of a kind with the subresource `scale`.
    fn scale_errors(&self, object: &Object, fields: ScaleFields) -> Vec<FieldError> {
        let paths = self.resource.def().scale_paths();
        paths.map_or_else(Vec::new, |paths| scale_errors(paths, object, fields))
    }

    fn invalid(&self, object: &Object, errors: &[FieldError]) -> ApiError {
        ApiError::invalid(self.resource.group_kind(), object.name(), errors)
    }
}

/// A strategy, and the objects of a write in its version.
struct StrategyInput<'a> {
    strategy: &'a dyn ErasedStrategy,
    new: &'a Object,
    /// `None` for a create.
    old: Option<&'a Object>,
}

impl StrategyInput<'_> {
    fn validate(&self, ctx: &RequestContext, subresource: &str) -> Result<Vec<FieldError>, String> {
        match self.old {
            Some(old) if subresource == "status" => {
                self.strategy.validate_status(ctx, self.new, old)
            }
            Some(old) => self.strategy.validate_update(ctx, self.new, old),
            None => self.strategy.validate(ctx, self.new),
        }
    }
}

/// The errors of an object in the version of the request.
struct VersionErrors {
    errors: Vec<FieldError>,
    /// Whether the schema has no errors.
    is_schema_valid: bool,
}

impl VersionErrors {
    /// The errors of the metadata, those of the schema, and those of the numbers of replicas.
    fn new(
        mut metadata: Vec<FieldError>,
        schema: Vec<FieldError>,
        replicas: Vec<FieldError>,
    ) -> Self {
        let is_schema_valid = schema.is_empty() && replicas.is_empty();
        metadata.extend(schema);
        metadata.extend(replicas);
        Self {
            errors: metadata,
            is_schema_valid,
        }
    }
}
