//! The types of a reference, and links to them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The prefix of the names of Kubernetes' own schemas, which every server has.
const META: &str = "io.k8s.apimachinery.";

/// The text at a JSON pointer; empty without one.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// `Flunder` of `com.example.wardle.v1.Flunder`.
pub(super) fn last_word(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Where references to the schemas of a document lead.
#[derive(Default)]
pub(super) struct Links<'a> {
    /// The anchors of the types that the reference has, by the names of their schemas.
    anchors: BTreeMap<&'a str, String>,
}

impl<'a> Links<'a> {
    /// Kinds and shared types have an anchor each; lists and Kubernetes' own types have none.
    pub(super) fn new(api_version: &str, schemas: &'a Map<String, Value>) -> Self {
        let anchors = schemas
            .iter()
            .filter(|(name, schema)| !name.starts_with(META) && !is_list(schema))
            .map(|(name, _)| {
                let anchor = format!("{api_version}-{}", last_word(name)).to_lowercase();
                (name.as_str(), anchor.replace(['/', '.'], "-"))
            })
            .collect();
        Self { anchors }
    }

    /// The anchor of a type, if the reference has it.
    pub(super) fn anchor(&self, schema: &str) -> Option<&str> {
        self.anchors.get(schema).map(String::as_str)
    }

    /// The name of a schema as Markdown, with a link if there is a place for it.
    pub(super) fn link(&self, schema: &str) -> String {
        let name = last_word(schema);
        match self.anchors.get(schema) {
            Some(anchor) => format!("[{name}](#{anchor})"),
            None if name == "ObjectMeta" => {
                format!(
                    "[{name}](https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/)"
                )
            }
            None => name.to_owned(),
        }
    }
}

/// Whether a schema is that of a list of objects.
fn is_list(schema: &Value) -> bool {
    schema.pointer("/properties/items/items/$ref").is_some()
        && text(schema, "/properties/metadata/allOf/0/$ref").ends_with(".ListMeta")
}
