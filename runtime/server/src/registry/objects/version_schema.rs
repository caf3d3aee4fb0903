//! The schema of a version: made and checked once, at registration or when it is first needed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use apiloom_meta::ApiError;
use apiloom_meta::kind::{ResourceDef, SchemaSource};
use apiloom_meta::schema::Schema;

use super::schema_checks::unfit_fields;
use crate::registry::located::of_kind;

/// The schema of a version.
pub(crate) struct VersionSchema {
    def: Arc<ResourceDef>,
    made: OnceLock<Made>,
}

struct Made {
    schema: Arc<Schema>,
    /// Why the version cannot be served: no structural schema, or one without fields that the definition names.
    problems: Vec<String>,
}

impl VersionSchema {
    pub(crate) fn new(def: Arc<ResourceDef>) -> Self {
        Self {
            def,
            made: OnceLock::new(),
        }
    }

    fn made(&self) -> &Made {
        self.made.get_or_init(|| {
            let def = &*self.def;
            let made = match def.schema.schema() {
                Ok(schema) => Made {
                    problems: unfit_fields(def, &schema),
                    schema,
                },
                Err(errors) => Made {
                    problems: errors.0.iter().map(|line| of_kind(def, line)).collect(),
                    schema: Arc::new(Schema::unusable()),
                },
            };
            // Registration reports the problems of other kinds.
            if matches!(def.schema, SchemaSource::LazyType(_)) {
                for problem in &made.problems {
                    tracing::error!("requests for a kind fail: {problem}");
                }
            }
            made
        })
    }

    /// The schema. One that cannot be made refuses every object.
    pub(crate) fn get(&self) -> &Arc<Schema> {
        &self.made().schema
    }

    /// Why the version cannot be served, a line each.
    pub(crate) fn problems(&self) -> &[String] {
        &self.made().problems
    }

    /// Refuses requests for a version that cannot be served.
    ///
    /// # Errors
    /// InternalError.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        match self.problems() {
            [] => Ok(()),
            problems => Err(ApiError::internal(problems.join("; "))),
        }
    }

    /// Whether the schema was made.
    #[cfg(test)]
    pub(crate) fn is_made(&self) -> bool {
        self.made.get().is_some()
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
