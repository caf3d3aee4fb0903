//! The schema of a version: made once, at registration or when it is first needed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use apiloom_meta::kind::{ResourceDef, SchemaSource};
use apiloom_meta::schema::{Schema, SchemaErrors};
use apiloom_meta::{ApiError, GroupVersionKind};

/// The schema of a version.
pub(crate) struct VersionSchema {
    of: GroupVersionKind,
    source: SchemaSource,
    made: OnceLock<Made>,
}

struct Made {
    schema: Arc<Schema>,
    /// Why the schema refuses every object.
    errors: Option<SchemaErrors>,
}

impl VersionSchema {
    pub(crate) fn new(def: &ResourceDef) -> Self {
        Self {
            of: def.gvk(),
            source: def.schema.clone(),
            made: OnceLock::new(),
        }
    }

    fn made(&self) -> &Made {
        self.made.get_or_init(|| match self.source.schema() {
            Ok(schema) => Made {
                schema,
                errors: None,
            },
            Err(errors) => {
                // Registration reports the errors of other kinds.
                if matches!(self.source, SchemaSource::LazyType(_)) {
                    let (kind, version) = (&self.of.kind, self.of.group_version());
                    tracing::error!(kind, %version, %errors, "requests for a kind without structural schema fail");
                }
                Made {
                    schema: Arc::new(Schema::unusable()),
                    errors: Some(errors),
                }
            }
        })
    }

    /// The schema. One that cannot be made refuses every object.
    pub(crate) fn get(&self) -> &Arc<Schema> {
        &self.made().schema
    }

    /// The schema.
    ///
    /// # Errors
    /// The fields that have no structural schema.
    pub(crate) fn checked(&self) -> Result<&Arc<Schema>, &SchemaErrors> {
        let made = self.made();
        match &made.errors {
            Some(errors) => Err(errors),
            None => Ok(&made.schema),
        }
    }

    /// Refuses requests for a kind whose schema cannot be made.
    ///
    /// # Errors
    /// InternalError.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        let errors = match self.checked() {
            Ok(_) => return Ok(()),
            Err(errors) => errors,
        };
        let GroupVersionKind { kind, .. } = &self.of;
        let version = self.of.group_version();
        Err(ApiError::internal(format!(
            "{kind} of {version} has no structural schema: {}",
            errors.0.join("; ")
        )))
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
            .field("of", &self.of)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
