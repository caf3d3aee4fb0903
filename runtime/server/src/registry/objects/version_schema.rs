//! The schema of a version: checked and checked once, at registration or when it is first needed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use apiloom_meta::ApiError;
use apiloom_meta::kind::{ResourceDef, SchemaSource};
use apiloom_meta::schema::Schema;

use super::schema_checks::unfit_fields;
use crate::registry::problems::kind_problem;

/// The schema of a version, checked when it is first needed.
pub(crate) struct VersionSchema {
    def: Arc<ResourceDef>,
    checked: OnceLock<CheckedSchema>,
}

struct CheckedSchema {
    schema: Arc<Schema>,
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
        self.checked.get_or_init(|| {
            let def = &*self.def;
            let checked = match def.schema.schema() {
                Ok(schema) => CheckedSchema {
                    problems: unfit_fields(def, &schema),
                    schema,
                },
                Err(errors) => CheckedSchema {
                    problems: errors
                        .0
                        .iter()
                        .map(|line| kind_problem(def, line))
                        .collect(),
                    schema: Arc::new(Schema::unusable()),
                },
            };
            // For kinds of other sources, registration reports the problems.
            if matches!(def.schema, SchemaSource::LazyType(_)) {
                for problem in &checked.problems {
                    tracing::error!("unable to serve requests for a kind: {problem}");
                }
            }
            checked
        })
    }

    /// The schema; one that refuses every object if it could not be checked.
    pub(crate) fn get(&self) -> &Arc<Schema> {
        &self.checked().schema
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

    /// Whether the schema was checked already.
    #[cfg(test)]
    pub(crate) fn is_made(&self) -> bool {
        self.checked.get().is_some()
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
