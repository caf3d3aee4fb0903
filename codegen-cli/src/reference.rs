//! The API reference of a package as data for its template: what the OpenAPI documents and the CRDs of the second phase say
//! of each kind, as Markdown. Nothing but these documents decides what it says.

mod fields;
mod links;
pub(crate) mod markdown;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use fields::FieldView;
use links::{Links, last_word, text};

/// The prefix of the names of OpenAPI documents.
const OPENAPI: &str = "openapi/v3/";

/// The view of `reference.md.tera`.
#[derive(Debug, Serialize)]
pub(crate) struct ReferenceView {
    package: String,
    versions: Vec<VersionView>,
}

/// A group and version with its kinds.
#[derive(Debug, Serialize)]
struct VersionView {
    /// As in `apiVersion`.
    name: String,
    kinds: Vec<KindView>,
}

/// A kind, or a type that several kinds name.
#[derive(Debug, Serialize)]
struct KindView {
    name: String,
    anchor: String,
    /// The paragraphs, or nothing.
    description: Vec<String>,
    /// Scope, resource, verbs.
    facts: Vec<String>,
    fields: Vec<FieldView>,
}

impl ReferenceView {
    /// The reference of these documents, by their names; `None` if they describe no kind.
    pub(crate) fn new(package: &str, documents: &Map<String, Value>) -> Option<Self> {
        let versions: Vec<VersionView> = documents
            .iter()
            .filter_map(|(name, document)| Some((name.strip_prefix(OPENAPI)?, document)))
            .filter_map(|(name, document)| version(name, document, documents))
            .collect();
        (!versions.is_empty()).then(|| Self {
            package: package.to_owned(),
            versions,
        })
    }
}

#[cfg(test)]
impl ReferenceView {
    /// A view for tests of the template: with all that it can have, or with nothing.
    pub(crate) fn example(is_full: bool) -> Self {
        let schema = serde_json::json!({"properties": {"a": {"type": "string"}}});
        let links = Links::default();
        let kind = KindView {
            name: "Thing".to_owned(),
            anchor: "v1-thing".to_owned(),
            description: vec!["A thing.".to_owned()],
            facts: vec!["One.".to_owned()],
            fields: fields::of(&schema, &links),
        };
        let version = VersionView {
            name: "v1".to_owned(),
            kinds: vec![kind],
        };
        Self {
            package: "p".to_owned(),
            versions: is_full.then_some(version).into_iter().collect(),
        }
    }
}

/// The kinds of one OpenAPI document, `apis/GROUP/VERSION.json` or `api/VERSION.json`.
fn version(name: &str, document: &Value, documents: &Map<String, Value>) -> Option<VersionView> {
    let place = name.strip_suffix(".json")?;
    let api_version = place
        .strip_prefix("apis/")
        .or_else(|| place.strip_prefix("api/"))?;
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    let links = Links::new(api_version, schemas);
    let kinds: Vec<KindView> = schemas
        .iter()
        .filter_map(|(name, schema)| Some((name, schema, links.anchor(name)?)))
        .map(|(name, schema, anchor)| {
            let kind = last_word(name);
            let fields = fields::of(schema, &links);
            KindView {
                name: kind.to_owned(),
                anchor: anchor.to_owned(),
                description: markdown::paragraphs(text(schema, "/description"))
                    .into_iter()
                    .collect(),
                facts: facts(&ServedKind::new(api_version, kind, document), documents),
                fields,
            }
        })
        .collect();
    (!kinds.is_empty()).then(|| VersionView {
        name: api_version.to_owned(),
        kinds,
    })
}

/// How a kind is served.
struct ServedKind {
    api_version: String,
    kind: String,
    is_namespaced: bool,
    /// The name in paths; empty if the kind has no paths.
    resource: String,
    verbs: BTreeSet<String>,
    subresources: BTreeSet<String>,
}

impl ServedKind {
    /// What the paths of a document say of a kind.
    fn new(api_version: &str, kind: &str, document: &Value) -> Self {
        let mut served = Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            is_namespaced: false,
            resource: String::new(),
            verbs: BTreeSet::new(),
            subresources: BTreeSet::new(),
        };
        let prefix = format!("/{api_version}/");
        let paths = document.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten() {
            let Some((_, path)) = path.split_once(&prefix) else {
                continue;
            };
            served.add(path, item);
        }
        // Of a subresource, the kind may be that of another resource's objects.
        let resource = served.resource.clone();
        for (path, _) in paths.into_iter().flatten() {
            let below = format!("/{resource}/{{name}}/");
            if let Some((_, sub)) = path.split_once(&below)
                && !resource.is_empty()
            {
                let sub = sub.split('/').next().unwrap_or(sub);
                served.subresources.insert(sub.to_owned());
            }
        }
        served
    }

    fn add(&mut self, path: &str, item: &Value) {
        let in_namespace = path.strip_prefix("namespaces/{namespace}/");
        let path = in_namespace.unwrap_or(path);
        let parts: Vec<&str> = path.split('/').collect();
        let ([resource] | [resource, "{name}"]) = parts.as_slice() else {
            return;
        };
        for operation in item.as_object().into_iter().flat_map(Map::values) {
            let gvk = "/x-kubernetes-group-version-kind/kind";
            let verb = text(operation, "/x-kubernetes-action");
            if text(operation, gvk) != self.kind || verb.is_empty() {
                continue;
            }
            (*resource).clone_into(&mut self.resource);
            self.is_namespaced |= in_namespace.is_some();
            // What all operations of a path take is told once for the path.
            let parameters = [operation, item].into_iter();
            let parameters = parameters.filter_map(|at| at.get("parameters")?.as_array());
            if parameters.flatten().any(|one| one["name"] == "watch") {
                self.verbs.insert("watch".to_owned());
            }
            self.verbs.insert(match verb {
                "post" => "create".to_owned(),
                "put" => "update".to_owned(),
                other => other.to_owned(),
            });
        }
    }
}

/// What a reader needs to know of a kind besides its fields, a line each.
fn facts(served: &ServedKind, documents: &Map<String, Value>) -> Vec<String> {
    if served.resource.is_empty() {
        return Vec::new();
    }
    let code = |names: &BTreeSet<String>| -> String {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let scope = if served.is_namespaced {
        "in a namespace"
    } else {
        "in the whole cluster"
    };
    let mut facts = vec![
        format!(
            "`apiVersion: {}`, `kind: {}`",
            served.api_version, served.kind
        ),
        format!("Resource: `{}`, {scope}", served.resource),
        format!("Verbs: {}", code(&served.verbs)),
    ];
    if !served.subresources.is_empty() {
        facts.push(format!("Subresources: {}", code(&served.subresources)));
    }
    let group = served
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    let crd = documents.get(&format!("crds/{}.{group}.yaml", served.resource));
    let crd = crd.or_else(|| documents.get(&format!("crds/{}.{group}", served.resource)));
    let short = crd.and_then(|crd| crd.pointer("/spec/names/shortNames"));
    let short: BTreeSet<String> = short
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    if !short.is_empty() {
        facts.push(format!("Short names: {}", code(&short)));
    }
    facts
}

#[cfg(test)]
mod tests;
