//! What a program that installs definitions knows of them: whether their names are free, and whether their kinds are served.

use std::collections::HashMap;
use std::sync::Arc;

use apiloom_kinds::apiextensions::v1::CustomResourceDefinition;
use apiloom_meta::Conditions as _;
use apiloom_registry::{Catalog, Document, Endpoint, Registry};

use super::known::{Known, object_of};
use super::{definition_of, names};

/// Checks the names of definitions before they are stored, as the controller will.
pub(crate) struct NameCheck {
    catalog: Arc<Catalog>,
    known: HashMap<String, Box<Known>>,
}

impl NameCheck {
    /// A check beside the kinds of this catalog.
    pub(crate) fn new(catalog: Arc<Catalog>) -> Self {
        Self {
            catalog,
            known: HashMap::new(),
        }
    }

    /// Adds a definition. Returns why its names cannot be accepted beside those that were added before.
    pub(crate) fn add(&mut self, mut object: CustomResourceDefinition) -> Option<String> {
        names::accept(&mut object, &self.known, &self.catalog);
        let known = Known::of_object(&object);
        self.known.insert(known.name.clone(), Box::new(known));
        let condition = object.status.conditions.condition("NamesAccepted");
        let refused = condition.filter(|one| one.status != "True")?;
        Some(text_of(
            refused.reason.as_deref(),
            refused.message.as_deref(),
        ))
    }
}

/// The state of a stored definition.
pub(crate) struct Progress {
    known: Known,
    /// Why its kind is not served.
    pub(crate) refusal: Option<String>,
}

impl Progress {
    /// That of a stored document, with the name of the definition; `None` of a document that is no definition.
    pub(crate) fn read(endpoint: &Endpoint, document: &Document) -> Option<(String, Self)> {
        let definition = definition_of(endpoint, document).ok()?;
        let conditions = definition.document()["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let refused = conditions.find(|one| {
            let expected = match one["type"].as_str() {
                Some("NamesAccepted") => "True",
                Some("NonStructuralSchema") => "False",
                _ => return false,
            };
            one["status"] != expected
        });
        let known = Known::of_object(&object_of(&definition));
        let name = known.name.clone();
        let refusal = refused.map(|one| text_of(one["reason"].as_str(), one["message"].as_str()));
        Some((name, Self { known, refusal }))
    }

    /// The name of the definition.
    pub(crate) fn name(&self) -> &str {
        &self.known.name
    }

    /// Whether the kind is established, and served as the definition says.
    pub(crate) fn is_served(&self, registry: &Registry) -> bool {
        let (catalog, resource) = (registry.catalog(), self.known.resource());
        let is_published = || catalog.document_state(&resource) == Some(&self.known.state());
        self.known.is_established && (catalog.is_compiled(&resource) || is_published())
    }
}

fn text_of(reason: Option<&str>, message: Option<&str>) -> String {
    format!(
        "{}: {}",
        reason.unwrap_or_default(),
        message.unwrap_or_default()
    )
}
