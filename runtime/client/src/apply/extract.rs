//! The configuration that a manager has applied, from an object's managedFields.

use apiloom_meta::gvk::GroupVersion;
use apiloom_meta::managed_fields::{FieldsError, MissingFields, Ownership};
use apiloom_meta::{ObjectMeta, Resource};
use serde_json::{Map, Value};

use super::configuration::schema_of;
use super::fields::Part;
use crate::error::Error;

/// The error of an extraction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The object has no managedFields at all: informers skip them by default, and writes can clear them. A
    /// configuration without fields, once applied, would remove what the manager has.
    #[error(
        "{object} has no managedFields: read it from the server, or from an informer that keeps them"
    )]
    NoManagedFields {
        /// Kind and name.
        object: String,
    },
    /// The manager has applied by another version of the API, in which the names of fields may differ.
    #[error(
        "{manager:?} has applied {object} as {applied}, not as {expected}: read it in that version"
    )]
    OtherVersion {
        /// Kind and name.
        object: String,
        /// The manager.
        manager: String,
        /// The `apiVersion` of its entry.
        applied: String,
        /// That of the type.
        expected: String,
    },
    /// The entry of the manager is malformed.
    #[error("the managedFields of {manager:?} in {object}: {error}")]
    Malformed {
        /// Kind and name.
        object: String,
        /// The manager.
        manager: String,
        /// The problem.
        error: FieldsError,
    },
    /// The manager has fields that the object's type does not: an apply without them would remove them.
    #[error("{manager:?} has fields of {object} that the type does not know: {missing}")]
    Missing {
        /// Kind and name.
        object: String,
        /// The manager.
        manager: String,
        /// The fields.
        missing: MissingFields,
    },
    /// The kind has no schema, or the object no JSON.
    #[error("{0}")]
    Kind(String),
}

impl From<ExtractError> for Error {
    fn from(error: ExtractError) -> Self {
        Self::Request(error.to_string())
    }
}

/// The fields of an object that a manager owns by apply, through the object itself (an empty subresource) or one of its
/// subresources. `None` if it has not applied anything.
///
/// `document` is the JSON of the object whose managedFields are given: that of its type or, to keep fields that the type
/// does not know, the one that the server sent.
///
/// # Errors
/// Those of [`ExtractError`].
pub fn extract_part<K: Resource>(
    document: &Value,
    metadata: &ObjectMeta,
    manager: &str,
    subresource: &str,
) -> Result<Option<Map<String, Value>>, ExtractError> {
    let object = || {
        let name = metadata.name.as_deref().unwrap_or_default();
        format!("{} {name:?}", K::KIND)
    };
    if metadata.managed_fields.is_empty() {
        return Err(ExtractError::NoManagedFields { object: object() });
    }
    let text =
        |text: &'_ Option<String>, expected: &str| text.as_deref().unwrap_or_default() == expected;
    let mut entries = metadata.managed_fields.iter();
    let entry = entries.find(|entry| {
        text(&entry.manager, manager)
            && text(&entry.operation, "Apply")
            && text(&entry.subresource, subresource)
    });
    let Some(entry) = entry else {
        return Ok(None);
    };
    let expected = GroupVersion::new(K::GROUP, K::VERSION).to_string();
    if !text(&entry.api_version, &expected) {
        return Err(ExtractError::OtherVersion {
            object: object(),
            manager: manager.to_owned(),
            applied: entry.api_version.clone().unwrap_or_default(),
            expected,
        });
    }
    let fields = entry.fields_v1.as_ref().map(|fields| fields.to_set());
    let fields = fields
        .transpose()
        .map_err(|error| ExtractError::Malformed {
            object: object(),
            manager: manager.to_owned(),
            error,
        })?;
    let schema = schema_of::<K>().map_err(ExtractError::Kind)?;
    match Ownership::of(&schema).extract(document, &fields.unwrap_or_default()) {
        Ok(Value::Object(part)) => Ok(Some(part)),
        Ok(_) => Err(ExtractError::Kind(format!(
            "{} is not a JSON object",
            object()
        ))),
        Err(missing) => Err(ExtractError::Missing {
            object: object(),
            manager: manager.to_owned(),
            missing,
        }),
    }
}

/// Adds what a manager owns of an object to a builder that has its type and name.
///
/// # Errors
/// As [`extract_part`].
pub fn extract<K: Resource, P: Part>(
    new: P,
    object: &K,
    manager: &str,
    subresource: &str,
) -> Result<P, ExtractError> {
    let document =
        serde_json::to_value(object).map_err(|error| ExtractError::Kind(error.to_string()))?;
    let part = extract_part::<K>(&document, object.metadata(), manager, subresource)?;
    let mut fields = new.fields().as_json().clone();
    for (name, value) in part.into_iter().flatten() {
        match (fields.get_mut(&name), value) {
            // The metadata has the name already.
            (Some(Value::Object(present)), Value::Object(more)) => present.extend(more),
            (_, value) => drop(fields.insert(name, value)),
        }
    }
    Ok(P::from_fields(fields.into()))
}
