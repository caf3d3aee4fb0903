//! What can be applied: a document with a name, and the checks before it is sent.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use apiloom_meta::Resource;
use apiloom_meta::managed_fields::Ownership;
use apiloom_meta::schema::Schema;
use parking_lot::Mutex;
use serde_json::Value;

use super::Document;
use super::fields::Part;
use crate::error::Error;

/// The fields of an object of the kind `K` that a manager applies.
///
/// The builders that `apiloom generate` makes implement it for their kind, and a [`Value`] for every kind: its
/// `metadata.name` is required, and `apiVersion` and `kind` are added. Fields that are serialized are owned from then on,
/// so a whole object that was read is rarely a good configuration.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a configuration of `{K}`",
    note = "with `clients = true`, `apiloom generate` makes one for each kind: `generated::apply`"
)]
pub trait Configuration<K> {
    /// The name of the object.
    fn name(&self) -> &str;

    /// The namespace of the object; `None` if the configuration does not say it.
    fn namespace(&self) -> Option<&str>;

    /// The fields, with those of the metadata.
    ///
    /// # Errors
    /// If a value has no JSON, or the server could not tell the items of a list apart.
    fn document(&self) -> Result<Document, Error>;
}

impl<K> Configuration<K> for Value {
    fn name(&self) -> &str {
        self["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn namespace(&self) -> Option<&str> {
        self["metadata"]["namespace"].as_str()
    }

    fn document(&self) -> Result<Document, Error> {
        match self {
            Self::Object(fields) => Ok(fields.clone()),
            _ => Err(Error::Request(
                "the configuration is not a JSON object".to_owned(),
            )),
        }
    }
}

/// A text of a builder's metadata.
pub fn metadata_text<'a>(part: &'a impl Part, name: &str) -> Option<&'a str> {
    part.get("metadata")?.get(name)?.as_str()
}

/// The document of a builder for a kind, whose items can be told apart.
///
/// # Errors
/// As [`Configuration::document`].
pub fn document<K: Resource>(part: &impl Part) -> Result<Document, Error> {
    let of_kind = |why: &str| {
        let name = metadata_text(part, "name").unwrap_or_default();
        Error::Request(format!("the configuration of {} {name:?}: {why}", K::KIND))
    };
    let document = serde_json::to_value(part).map_err(|error| of_kind(&error.to_string()))?;
    let schema = schema_of::<K>().map_err(|error| of_kind(&error))?;
    match &*Ownership::of(&schema).item_problems(&document) {
        [] => {}
        problems => return Err(of_kind(&problems.join("; "))),
    }
    match document {
        Value::Object(fields) => Ok(fields),
        _ => Err(of_kind("it is not a JSON object")),
    }
}

/// The schemas of the kinds that were used, which take some time to make.
static SCHEMAS: LazyLock<Mutex<HashMap<TypeId, Arc<Schema>>>> = LazyLock::new(Mutex::default);

/// The schema of a kind.
///
/// # Errors
/// If the type has none; no server serves such a kind.
pub(super) fn schema_of<K: Resource>() -> Result<Arc<Schema>, String> {
    let id = TypeId::of::<K>();
    if let Some(schema) = SCHEMAS.lock().get(&id) {
        return Ok(Arc::clone(schema));
    }
    let schema = K::definition().schema.schema();
    let schema = schema.map_err(|error| format!("{} has no schema: {error}", K::KIND))?;
    SCHEMAS.lock().insert(id, Arc::clone(&schema));
    Ok(schema)
}
