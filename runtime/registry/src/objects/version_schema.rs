//! The schema of a version: checked and checked once, at registration or when it is first needed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use apiloom_cel::Rules;
use apiloom_meta::interrupt::apart;
use apiloom_meta::kind::{ResourceDef, SchemaSource};
use apiloom_meta::schema::{Metadata, Schema};
use apiloom_meta::validation::embedded_errors;
use apiloom_meta::{ApiError, FieldError, FieldPath};
use serde_json::Value;

use super::schema_checks::unfit_fields;
use crate::problems::kind_problem;

/// The schema of a version, checked when it is first needed.
pub struct VersionSchema {
    def: Arc<ResourceDef>,
    /// Boxed, since the schemas of most custom resources are not needed for long.
    checked: OnceLock<Box<CheckedSchema>>,
}

struct CheckedSchema {
    schema: Arc<Schema>,
    /// The rules of `x-kubernetes-validations`, compiled when they are first needed.
    rules: OnceLock<Option<Rules>>,
    /// Why the version cannot be served: the schema is not structural, or lacks fields that the definition names.
    problems: Vec<String>,
}

impl VersionSchema {
    pub(crate) fn new(def: Arc<ResourceDef>) -> Self {
        Self {
            def,
            checked: OnceLock::new(),
        }
    }

    fn checked(&self) -> &CheckedSchema {
        // Others use it too.
        let make = || {
            let def = &*self.def;
            let checked = match def.schema.schema() {
                Ok(schema) => checked(def, schema),
                Err(errors) => CheckedSchema {
                    problems: errors
                        .0
                        .iter()
                        .map(|line| kind_problem(def, line))
                        .collect(),
                    schema: Arc::new(Schema::unusable()),
                    rules: OnceLock::from(None),
                },
            };
            // For kinds of other sources, registration reports the problems.
            if def.schema.is_lazy() {
                for problem in &checked.problems {
                    tracing::error!("unable to serve requests for a kind: {problem}");
                }
            }
            Box::new(checked)
        };
        self.checked.get_or_init(|| apart(make))
    }

    /// The schema; one that refuses every object if it could not be checked.
    pub fn get(&self) -> &Arc<Schema> {
        &self.checked().schema
    }

    /// The errors of a new document, or of a change of an old one: first the errors of the schema, then the errors of the metadata of
    /// embedded objects, also of unchanged ones, then the errors of the schema's rules. Rules are not evaluated for a
    /// document with errors of a kind that would only be repeated. Violations of rules that are tolerated, because their
    /// values have not changed, are added to `tolerated`.
    pub(crate) fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        tolerated: &mut Vec<FieldError>,
    ) -> Vec<FieldError> {
        let schema = self.get();
        let mut errors = match old {
            Some(old) => schema.validate_update(new, old),
            None => schema.validate(new),
        };
        errors.extend(embedded_errors(schema, new));
        self.add_rule_errors(errors, new, old, tolerated)
    }

    /// The errors of a change of a document that can only change one field, such as the status: those of this field, then
    /// those of all rules.
    pub(crate) fn validate_field(
        &self,
        field: &str,
        new: &Value,
        old: &Value,
        tolerated: &mut Vec<FieldError>,
    ) -> Vec<FieldError> {
        let errors = self.get().validate_field_update(field, new, old);
        self.add_rule_errors(errors, new, Some(old), tolerated)
    }

    /// Whether a change may have errors that the changed document, as a new one, does not have.
    pub(crate) fn has_update_rules(&self) -> bool {
        self.get().has_update_rules() || self.rules().is_some()
    }

    /// The rules of `x-kubernetes-validations`.
    fn rules(&self) -> Option<&Rules> {
        let checked = self.checked();
        let compiled = || compile(&checked.schema).0;
        let rules = checked.rules.get_or_init(|| apart(compiled));
        rules.as_ref()
    }

    fn add_rule_errors(
        &self,
        mut errors: Vec<FieldError>,
        new: &Value,
        old: Option<&Value>,
        tolerated: &mut Vec<FieldError>,
    ) -> Vec<FieldError> {
        if let Some(rules) = self.rules() {
            if apiloom_cel::blocks_rules(&errors) {
                errors.push(apiloom_cel::not_checked());
            } else {
                let found = rules.check(new, old);
                errors.extend(found.errors);
                tolerated.extend(found.tolerated);
            }
        }
        errors
    }

    /// The schema as OpenAPI v3. For that alone, the schema of a stored definition is not made.
    pub fn to_openapi(&self, metadata: &Metadata<'_>) -> Value {
        match (&self.def.schema, self.checked.get()) {
            (SchemaSource::Stored(stored), None) => stored.to_openapi(metadata),
            _ => self.get().to_openapi(metadata),
        }
    }

    /// The schema as OpenAPI v2, in the same way.
    pub fn to_openapi_v2(&self, metadata: &Metadata<'_>) -> Value {
        match (&self.def.schema, self.checked.get()) {
            (SchemaSource::Stored(stored), None) => stored.to_openapi_v2(metadata),
            _ => self.get().to_openapi_v2(metadata),
        }
    }

    /// Why the version cannot be served, one line each; empty if it can.
    pub(crate) fn problems(&self) -> &[String] {
        &self.checked().problems
    }

    /// Fails if the version cannot be served, with the problems as the message.
    ///
    /// # Errors
    /// InternalError.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        match self.problems() {
            [] => Ok(()),
            problems => Err(ApiError::internal(problems.join("; "))),
        }
    }

    /// The bytes of the stored definition of which something is to be made yet: the schema, or with `has_rules` also its rules. 0 if all
    /// is made, and for the schemas of types and documents.
    pub(crate) fn bytes_to_make(&self, has_rules: bool) -> usize {
        let SchemaSource::Stored(stored) = &self.def.schema else {
            return 0;
        };
        match self.checked.get() {
            Some(checked) if !has_rules || checked.rules.get().is_some() => 0,
            _ => stored.json().len(),
        }
    }

    /// Makes the schema, or with `has_rules` also its rules.
    pub(crate) fn make(&self, has_rules: bool) {
        if has_rules {
            self.rules();
        } else {
            self.checked();
        }
    }

    /// Whether the schema was checked already.
    #[cfg(test)]
    pub(crate) fn is_made(&self) -> bool {
        self.checked.get().is_some()
    }
}

/// Compiles the rules of a schema. Returns the problems of rules too.
fn compile(schema: &Schema) -> (Option<Rules>, Vec<FieldError>) {
    let Some(document) = schema.with_validations() else {
        return (None, Vec::new());
    };
    let compiled = apiloom_cel::compile(&document, &FieldPath::root());
    (compiled.rules, compiled.errors)
}

fn checked(def: &ResourceDef, schema: Arc<Schema>) -> CheckedSchema {
    let mut problems = unfit_fields(def, &schema);
    let rules = OnceLock::new();
    // A document's rules were checked with its definition; one that is refused since then refuses objects, no more.
    if matches!(
        def.schema,
        SchemaSource::Type(_) | SchemaSource::LazyType(_)
    ) {
        let (compiled, errors) = compile(&schema);
        let lines = errors.iter().map(|error| kind_problem(def, error));
        problems.extend(lines);
        let _ = rules.set(compiled);
    }
    CheckedSchema {
        schema,
        rules,
        problems,
    }
}

impl fmt::Debug for VersionSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VersionSchema")
            .field("of", &self.def.gvk())
            .field("source", &self.def.schema)
            .finish_non_exhaustive()
    }
}
