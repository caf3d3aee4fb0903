//! The rules of `x-kubernetes-validations` in a schema, for the crate that evaluates them.

use memchr::memmem;
use serde_json::Value;

use super::node::{Node, VALIDATIONS};
use super::{Metadata, Schema, openapi};

impl Schema {
    /// The document of the schema if it has rules in `x-kubernetes-validations`, as
    /// [`Schema::to_openapi`] with open metadata; that of a custom resource is the `openAPIV3Schema` of its definition.
    ///
    /// ```
    /// use apiloom_schema::{Hooks, Schema};
    /// use serde_json::json;
    /// let mut document = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    /// let schema = |document: &_| Schema::from_json(document, &Hooks::default());
    /// assert!(schema(&document)?.with_validations().is_none());
    /// document["properties"]["size"]["x-kubernetes-validations"] = json!([{"rule": "self > 1"}]);
    /// let found = schema(&document)?.with_validations();
    /// assert_eq!(found, Some(document));
    /// # Ok::<(), apiloom_schema::SchemaErrors>(())
    /// ```
    pub fn with_validations(&self) -> Option<Value> {
        if let Some(json) = &self.document {
            let is_found = memmem::find(json, VALIDATIONS.as_bytes()).is_some();
            return is_found
                .then(|| serde_json::from_slice(json).ok())
                .flatten();
        }
        has_validations(&self.root).then(|| openapi::v3(&self.root, &Metadata::Open))
    }
}

fn has_validations(node: &Node) -> bool {
    let properties = node.properties.iter().map(|property| &*property.node);
    let elements = [&node.additional, &node.items];
    let elements = elements.into_iter().flatten().map(|element| &**element);
    node.extensions.iter().any(|(name, _)| name == VALIDATIONS)
        || properties.chain(elements).any(has_validations)
}
