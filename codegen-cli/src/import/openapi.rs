//! Documents of OpenAPI v3, as Kubernetes servers publish one for each version of a group, as definitions of their kinds.
//!
//! A kind is one that a path serves. The paths tell its plural, scope, verbs and subresources; a document does not tell short
//! names, columns, or which version is stored.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::components::Components;
use super::definition::{Definition, Scale, Version, entries, items, text};
use super::native;
use super::versions::priority;

/// Kinds that every server has already.
const OF_EVERY_SERVER: [(&str, &str); 1] = [("", "Namespace")];

/// The media type of strategic merge patches.
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The verbs of `#[resource]`, in its spelling, by the action of an operation.
const VERBS: [(&str, &str); 8] = [
    ("post", "create"),
    ("delete", "delete"),
    ("deletecollection", "delete_collection"),
    ("get", "get"),
    ("list", "list"),
    ("patch", "patch"),
    ("put", "update"),
    ("watchlist", "watch"),
];

/// Reads documents, each with the place for messages. Those of one group may have several versions of a kind.
///
/// # Errors
/// A document that has no kinds, or whose schemas cannot be read.
pub(super) fn read(documents: &[(&str, &Value)]) -> Result<Vec<Definition>, String> {
    let (definitions, failures) = read_each(documents)?;
    match failures.into_iter().next() {
        Some(failure) => Err(failure),
        None => Ok(definitions),
    }
}

/// Reads documents as [`read`], and goes on after one that cannot be read. Returns why those cannot, too.
///
/// # Errors
/// A version of a kind that two documents have.
pub(super) fn read_each(
    documents: &[(&str, &Value)],
) -> Result<(Vec<Definition>, Vec<String>), String> {
    let mut definitions: BTreeMap<(String, String), Definition> = BTreeMap::new();
    let mut failures = Vec::new();
    for (place, document) in documents {
        let found = of_document(document, place).unwrap_or_else(|error| {
            failures.push(format!("{place}: {error}"));
            Vec::new()
        });
        for mut definition in found {
            let key = (definition.group.clone(), definition.kind.clone());
            let Some(known) = definitions.get_mut(&key) else {
                definitions.insert(key, definition);
                continue;
            };
            let Some(version) = definition.versions.pop() else {
                continue;
            };
            if known.versions.iter().any(|twin| twin.name == version.name) {
                return Err(format!(
                    "{} {} is in {} and in {place}\n  help: import one of them",
                    known.name(),
                    version.name,
                    known.source
                ));
            }
            known.left_out.append(&mut definition.left_out);
            known.versions.push(version);
        }
    }
    let mut definitions: Vec<Definition> = definitions.into_values().collect();
    definitions.iter_mut().for_each(choose_stored);
    Ok((definitions, failures))
}

/// Stores the version that clients prefer, since no document says which is stored.
fn choose_stored(definition: &mut Definition) {
    definition
        .versions
        .sort_by_key(|version| std::cmp::Reverse(priority(&version.name)));
    let is_one = definition.versions.len() == 1;
    if let Some(first) = definition.versions.first_mut() {
        first.is_stored = true;
        if !is_one {
            definition.left_out.push(format!(
                "{}: is taken to be the stored version, which documents of OpenAPI do not tell",
                first.name
            ));
        }
    }
}

/// What the paths tell of a resource.
#[derive(Debug, Default)]
struct Resource {
    kind: Option<(String, String, String)>,
    is_namespaced: bool,
    verbs: BTreeSet<&'static str>,
    has_strategic_patch: bool,
    subresources: BTreeSet<String>,
}

fn of_document(document: &Value, place: &str) -> Result<Vec<Definition>, String> {
    if let Some(version) = document["swagger"].as_str() {
        return Err(format!(
            "this is a document of OpenAPI v{version}, which leaves out parts of schemas\n  \
             help: import the documents of v3, such as `kubectl get --raw /openapi/v3/apis/GROUP/VERSION` prints"
        ));
    }
    let version = text(&document["openapi"]).unwrap_or_default();
    if !version.starts_with("3.") {
        return Err(format!("the version of OpenAPI is {version:?}, not 3"));
    }
    let empty = Map::new();
    let schemas = document["components"]["schemas"]
        .as_object()
        .unwrap_or(&empty);
    let resources = resources(&document["paths"]);
    // A document has Go types of Kubernetes, or kinds of definitions and of other servers, and seldom both.
    let mut native = Components::new(schemas, true);
    let mut others = Components::new(schemas, false);
    let mut definitions = Vec::new();
    for ((group, version, plural), resource) in resources {
        let Some((kind_group, kind_version, kind)) = resource.kind.clone() else {
            continue;
        };
        // A review, such as a SubjectAccessReview of another group, is no kind of this one.
        let is_own = kind_group == group && kind_version == version;
        if !is_own || OF_EVERY_SERVER.contains(&(&*group, &*kind)) {
            continue;
        }
        let Some(component) = component_of(schemas, &group, &version, &kind) else {
            return Err(format!(
                "the paths have the kind {kind}, and no component is its schema"
            ));
        };
        let is_native = native::is_native(&schemas[component]);
        let schema = if is_native {
            let mut schema = native.read(component)?;
            native::settle(&mut schema);
            schema
        } else {
            others.read(component)?
        };
        let names = KindNames {
            group: &group,
            version: &version,
            plural: &plural,
            kind: &kind,
        };
        definitions.push(definition(
            names,
            place,
            &resource,
            Schema {
                value: schema,
                is_native,
                selectable: items(&schemas[component]["x-kubernetes-selectable-fields"])
                    .iter()
                    .filter_map(|field| text(&field["fieldPath"]))
                    .map(|path| format!(".{}", path.trim_start_matches('.')))
                    .collect(),
            },
        ));
    }
    if definitions.is_empty() {
        return Err(
            "the document has no kinds\n  help: each version of a group has a document of its own, whose path is in /openapi/v3"
                .to_owned(),
        );
    }
    Ok(definitions)
}

/// The schema of a kind, and the JSONPaths of its selectable fields.
struct Schema {
    value: Value,
    is_native: bool,
    selectable: Vec<String>,
}

/// The names of a kind in its paths and in its component.
#[derive(Clone, Copy)]
struct KindNames<'a> {
    group: &'a str,
    version: &'a str,
    plural: &'a str,
    kind: &'a str,
}

fn definition(
    names: KindNames<'_>,
    place: &str,
    resource: &Resource,
    schema: Schema,
) -> Definition {
    let KindNames {
        group,
        version,
        plural,
        kind,
    } = names;
    let mut left_out = Vec::new();
    let scale = resource.subresources.contains("scale").then(|| {
        left_out.push(format!(
            "{version}: the paths of the subresource scale are taken to be .spec.replicas and .status.replicas, \
             since documents of OpenAPI do not tell them"
        ));
        Scale {
            spec: ".spec.replicas".to_owned(),
            status: ".status.replicas".to_owned(),
            selector: None,
        }
    });
    for name in &resource.subresources {
        if name != "status" && name != "scale" {
            left_out.push(format!(
                "{version}: the subresource {name} is left out; write subresource(..) or connect(..)"
            ));
        }
    }
    let is_whole = VERBS.iter().all(|(_, verb)| resource.verbs.contains(verb));
    Definition {
        source: place.to_owned(),
        group: group.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_ascii_lowercase(),
        list_kind: format!("{kind}List"),
        kind: kind.to_owned(),
        short_names: Vec::new(),
        categories: Vec::new(),
        is_namespaced: resource.is_namespaced,
        verbs: (!is_whole).then(|| {
            let verbs = VERBS.iter().map(|(_, verb)| *verb);
            verbs.filter(|verb| resource.verbs.contains(verb)).collect()
        }),
        has_strategic_patch: resource.has_strategic_patch,
        status_writes_metadata: schema.is_native && native::status_writes_metadata(group, kind),
        left_out,
        versions: vec![Version {
            name: version.to_owned(),
            is_served: true,
            is_stored: false,
            is_deprecated: false,
            deprecation_warning: None,
            schema: schema.value,
            columns: Vec::new(),
            selectable: schema.selectable,
            has_status: resource.subresources.contains("status"),
            scale,
        }],
    }
}

/// The component that is the schema of a kind.
fn component_of<'a>(
    schemas: &'a Map<String, Value>,
    group: &str,
    version: &str,
    kind: &str,
) -> Option<&'a str> {
    let is_it = |schema: &Value| {
        items(&schema["x-kubernetes-group-version-kind"])
            .iter()
            .any(|of| of["group"] == group && of["version"] == version && of["kind"] == kind)
    };
    let found = schemas.iter().find(|(_, schema)| is_it(schema));
    found.map(|(name, _)| name.as_str())
}

/// The resources of the paths, by group, version and plural.
fn resources(paths: &Value) -> BTreeMap<(String, String, String), Resource> {
    let mut resources: BTreeMap<(String, String, String), Resource> = BTreeMap::new();
    for (path, methods) in entries(paths) {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, below) = match parts.as_slice() {
            ["api", version, below @ ..] => ("", *version, below),
            ["apis", group, version, below @ ..] => (*group, *version, below),
            _ => continue,
        };
        let (is_namespaced, below) = match below {
            // An older form of a watch, whose verb the list has as well.
            ["watch", ..] => continue,
            ["namespaces", "{namespace}", below @ ..] if !below.is_empty() => (true, below),
            below => (false, below),
        };
        let [plural, below @ ..] = below else {
            continue;
        };
        let key = (group.to_owned(), version.to_owned(), (*plural).to_owned());
        let resource = resources.entry(key).or_default();
        resource.is_namespaced |= is_namespaced;
        match below {
            [] | ["{name}"] => resource.add(methods),
            ["{name}", subresource, ..] => {
                resource.subresources.insert((*subresource).to_owned());
            }
            _ => {}
        }
    }
    resources
}

impl Resource {
    /// Adds the operations of a path.
    fn add(&mut self, methods: &Value) {
        for (_, operation) in entries(methods) {
            let Some(action) = operation["x-kubernetes-action"].as_str() else {
                continue;
            };
            if let Some((_, verb)) = VERBS.iter().find(|(name, _)| *name == action) {
                self.verbs.insert(verb);
            }
            // A list is watched by the same path.
            if action == "list" {
                self.verbs.insert("watch");
            }
            let said = |name: &str| text(&operation["x-kubernetes-group-version-kind"][name]);
            if let (Some(group), Some(version), Some(kind)) =
                (said("group"), said("version"), said("kind"))
            {
                self.kind = Some((group, version, kind));
            }
            let formats = &operation["requestBody"]["content"];
            self.has_strategic_patch |= formats.get(STRATEGIC).is_some();
        }
    }
}
