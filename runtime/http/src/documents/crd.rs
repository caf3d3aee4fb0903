//! CustomResourceDefinitions of the kinds, and the dump of all documents for the generator.

use std::collections::BTreeMap;
use std::sync::Arc;

use apiloom_meta::kind::{
    CellSource, Column, ConversionMethod, ProtoFile, ProtoFiles, Scope, SelectableField,
    SubresourceDef,
};
use apiloom_meta::schema::structural;
use apiloom_meta::{FieldPath, GroupVersionKind, ResourceDef};
use apiloom_registry::{Catalog, with_places};
use serde_json::{Map, Value, json};

use super::openapi::{KindSource, VersionSource, describe_root, forget_required_metadata};
use crate::shape::table::type_name;

mod formats;

/// All documents of the generator, as an object from relative paths to documents.
///
/// `openapi/v2.json`, `openapi/v3/apis/GROUP/VERSION.json` and `crds/PLURAL.GROUP`; also `openapi/v3/api/VERSION.json`
/// if the core group has other kinds than Namespace. A kind of the core group has no definition, since kube-apiserver
/// accepts none without a group. `proto/PATH` is the content of a `.proto` file, a [`ProtoFile`]. The key `notes` has
/// comments for the documents, as lines by the same paths.
///
/// # Errors
/// Parts of the definitions that kube-apiserver would refuse or ignore.
pub fn dump(catalog: &Catalog) -> Result<Value, Vec<String>> {
    let (sources, unserved) = (VersionSource::all(catalog), unserved(catalog));
    let mut files = documents(&sources, &unserved);
    let mut problems = problems(&files, &sources, &unserved);
    match proto_files(&sources) {
        Ok(proto) => proto.into_iter().for_each(|(path, file)| {
            files[format!("proto/{path}")] = json!(file);
        }),
        Err(lines) => problems.extend(lines),
    }
    if problems.is_empty() {
        Ok(files)
    } else {
        Err(problems)
    }
}

/// The `.proto` files of the program's kinds, and of the bodies of their subresources in the same groups.
fn proto_files(sources: &[VersionSource]) -> Result<BTreeMap<String, ProtoFile>, Vec<String>> {
    let mut files = ProtoFiles::default();
    let own_groups: Vec<&str> = sources
        .iter()
        .filter(|source| source.kinds.iter().any(|kind| !kind.is_own))
        .map(|source| &*source.group)
        .collect();
    let bodies = sources.iter().flat_map(|source| &source.bodies);
    let bodies = bodies.filter(|kind| own_groups.contains(&&*kind.def.group));
    let kinds = sources.iter().flat_map(|source| &source.kinds);
    let kinds = kinds.chain(bodies);
    for kind in kinds.filter(|kind| !kind.is_own && kind.def.protobuf.is_some()) {
        files.add(&kind.def, &(kind.in_crd)().schema);
    }
    files.finish()
}

/// The problems of all definitions in the documents, each with the source location and the name of its definition.
fn problems(files: &Value, sources: &[VersionSource], unserved: &[KindSource]) -> Vec<String> {
    let mut lines = Vec::new();
    for versions in resources(sources, unserved) {
        let name = versions[0].def.group_resource();
        let crd = &files[format!("crds/{name}")];
        for (at, kind) in versions.iter().enumerate() {
            let path = FieldPath::new(format!("spec.versions[{at}].schema.openAPIV3Schema"));
            let schema = &crd["spec"]["versions"][at]["schema"]["openAPIV3Schema"];
            let line = |problem| {
                let text = format!("CustomResourceDefinition {name}: {problem}");
                with_places([kind.def.place], text)
            };
            lines.extend(structural::problems(schema, &path).into_iter().map(line));
        }
    }
    lines
}

/// Versions that are registered but not served. A definition contains them, since one may be the storage version.
fn unserved(catalog: &Catalog) -> Vec<KindSource> {
    let endpoints = catalog.endpoints();
    let mut seen: Vec<GroupVersionKind> = endpoints.iter().map(|e| e.def().gvk()).collect();
    let mut unserved = Vec::new();
    for (def, schema) in endpoints.iter().flat_map(|endpoint| endpoint.versions()) {
        if !seen.contains(&def.gvk()) {
            seen.push(def.gvk());
            let mut kind = KindSource::new(def, schema, None);
            Arc::make_mut(&mut kind.def).served = false;
            unserved.push(kind);
        }
    }
    unserved
}

pub(crate) fn documents(sources: &[VersionSource], unserved: &[KindSource]) -> Value {
    let own = sources.iter().filter(|source| is_the_users(source));
    let (mut files, mut notes) = (Map::new(), Map::new());
    // What can be written as JSON is a value.
    let v2 = serde_json::to_value(VersionSource::v2(own.clone())).unwrap_or_default();
    files.insert("openapi/v2.json".into(), v2);
    for source in own {
        let v3 = serde_json::to_value(source.v3()).unwrap_or_default();
        files.insert(format!("openapi/v3/{}.json", source.key()), v3);
    }
    for versions in resources(sources, unserved) {
        let Some(crd) = definition(&versions) else {
            continue;
        };
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("crds/{name}");
        let lines = self::notes(&versions);
        if !lines.is_empty() {
            notes.insert(path.clone(), lines.into());
        }
        files.insert(path, crd);
    }
    files.insert("notes".into(), notes.into());
    Value::Object(files)
}

/// Whether a version has other kinds than those of every server.
fn is_the_users(source: &VersionSource) -> bool {
    source.kinds.iter().any(|kind| !kind.is_own)
}

/// The versions of each resource, in order of registration.
fn resources<'a>(
    sources: &'a [VersionSource],
    unserved: &'a [KindSource],
) -> Vec<Vec<&'a KindSource>> {
    let served = sources.iter().flat_map(|source| &source.kinds);
    let mut resources: Vec<Vec<&KindSource>> = Vec::new();
    for kind in served
        .chain(unserved)
        .filter(|kind| kind.def.has_store && !kind.def.group.is_empty() && !kind.is_own)
    {
        let resource = kind.def.group_resource();
        match resources
            .iter_mut()
            .find(|versions| versions[0].def.group_resource() == resource)
        {
            Some(versions) => versions.push(kind),
            None => resources.push(vec![kind]),
        }
    }
    resources
}

/// Whether the schema differs between versions. kube-apiserver would change only `apiVersion`, and lose the fields
/// that the other version names differently.
fn converts(versions: &[&KindSource]) -> bool {
    let mut conversions = versions
        .iter()
        .filter_map(|kind| kind.def.conversion.as_ref());
    conversions.any(|conversion| !matches!(conversion.method, ConversionMethod::Rename))
}

/// Comments on the behaviour that the definition cannot express.
fn notes(versions: &[&KindSource]) -> Vec<String> {
    let mut notes = Vec::new();
    if converts(versions) {
        notes.push(
            "This definition serves the stored version alone: kube-apiserver does not know how the others convert, and would"
                .to_owned(),
        );
        notes.push(
            "lose fields. The generated server converts; a conversion webhook of your own would let you serve the others here."
                .to_owned(),
        );
    }
    for kind in versions {
        let computed = kind
            .def
            .columns
            .iter()
            .filter(|column| matches!(column.source, CellSource::With(_)))
            .map(|column| &*column.name)
            .collect::<Vec<_>>();
        if !computed.is_empty() {
            notes.push(format!(
                "Columns of {} that a function computes have no path, so they are left out: {}.",
                kind.def.version,
                computed.join(", ")
            ));
        }
        let subresources = kind.def.served_subresources();
        let unknown: Vec<&str> = subresources
            .map(|sub| &*sub.name)
            .filter(|name| ![SubresourceDef::STATUS, SubresourceDef::SCALE].contains(name))
            .collect();
        if !unknown.is_empty() {
            notes.push(format!(
                "Subresources of {} that this definition cannot have: {}.",
                kind.def.version,
                unknown.join(", ")
            ));
        }
        let unsaid = (kind.in_crd)().unsaid;
        if !unsaid.is_empty() {
            notes.push(format!(
                "Rules of {} that the server checks and this definition cannot say:",
                kind.def.version
            ));
        }
        notes.extend(unsaid.into_iter().map(|line| format!("- {line}")));
    }
    notes
}

/// The annotation on kinds in Kubernetes' own groups, with the URL of the approval or the word `unapproved`.
/// kube-apiserver refuses a definition without it.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Whether a group belongs to Kubernetes (`k8s.io`, `kubernetes.io`).
fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        let above = group.strip_suffix(domain);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    })
}

/// A definition has one set of names, which is that of the storage version.
fn definition(versions: &[&KindSource]) -> Option<Value> {
    let def = &versions
        .iter()
        .find(|kind| kind.def.storage)
        .or(versions.first())?
        .def;
    let mut names = json!({
        "plural": def.plural,
        "singular": def.singular,
        "kind": def.kind,
        "listKind": def.list_kind,
    });
    if !def.short_names.is_empty() {
        names["shortNames"] = json!(def.short_names);
    }
    if !def.categories.is_empty() {
        names["categories"] = json!(def.categories);
    }
    let mut metadata = json!({ "name": format!("{}.{}", def.plural, def.group) });
    if is_protected(&def.group) {
        metadata["annotations"] =
            json!({ APPROVAL: "unapproved, generated from the types of a server" });
    }
    Some(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": def.group,
            "names": names,
            "scope": if def.scope == Scope::Namespaced { "Namespaced" } else { "Cluster" },
            "versions": versions.iter().map(|kind| version(kind, versions)).collect::<Vec<_>>(),
        },
    }))
}

fn version(kind: &KindSource, versions: &[&KindSource]) -> Value {
    let def = &kind.def;
    // A single version is the storage version, declared or not.
    let storage = def.storage || versions.len() == 1;
    let mut version = json!({
        "name": def.version,
        "served": def.served && (storage || !converts(versions)),
        "storage": storage,
        "schema": { "openAPIV3Schema": schema(kind) },
    });
    if def.has_status() {
        version["subresources"]["status"] = json!({});
    }
    if let Some(paths) = def.scale_paths() {
        let mut scale = json!({
            "specReplicasPath": paths.spec.to_string(),
            "statusReplicasPath": paths.status.to_string(),
        });
        if let Some(selector) = &paths.selector {
            scale["labelSelectorPath"] = selector.to_string().into();
        }
        version["subresources"]["scale"] = scale;
    }
    // kube-apiserver adds the name itself.
    let declared = def.columns.iter().filter(|column| column.name != "Name");
    let mut columns: Vec<Value> = declared.filter_map(column).collect();
    if !columns.is_empty() {
        columns.extend(age(def));
        version["additionalPrinterColumns"] = columns.into();
    }
    let fields = def.selectable.iter().filter_map(SelectableField::path);
    let fields: Vec<Value> = fields
        .map(|path| json!({ "jsonPath": path.to_string() }))
        .collect();
    // kube-apiserver refuses versions that have equal selectable fields and different schemas. Where only one version is
    // served, nothing is selected by the fields of others.
    let is_served = version["served"] == true || !converts(versions);
    if !fields.is_empty() && is_served {
        version["selectableFields"] = fields.into();
    }
    if let Some(warning) = &kind.deprecation_warning {
        version["deprecated"] = true.into();
        version["deprecationWarning"] = warning.as_str().into();
    }
    version
}

/// The schema of metadata in a CRD may only be `type: object`.
fn schema(kind: &KindSource) -> Value {
    let mut schema = (kind.in_crd)().schema;
    describe_root(&mut schema, &kind.def);
    forget_required_metadata(&mut schema);
    forget_unknown_extensions(&mut schema);
    formats::replace_unknown(&mut schema);
    schema
}

/// Removes extensions that CRDs do not support: kubectl refuses to apply documents with unknown fields.
fn forget_unknown_extensions(schema: &mut Value) {
    const KNOWN: [&str; 7] = [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    ];
    let Value::Object(keywords) = schema else {
        return;
    };
    keywords.retain(|name, _| !name.starts_with("x-") || KNOWN.contains(&name.as_str()));
    let below = keywords
        .iter_mut()
        .flat_map(|(name, value)| match (name.as_str(), value) {
            ("properties", Value::Object(fields)) => fields.values_mut().collect(),
            ("items" | "additionalProperties", schema) => vec![schema],
            _ => Vec::new(),
        });
    below.for_each(forget_unknown_extensions);
}

/// The Age column, which this server appends to declared columns and kube-apiserver does not.
fn age(def: &ResourceDef) -> Option<Value> {
    let declared = def
        .columns
        .iter()
        .any(|column| column.name.eq_ignore_ascii_case("age") || column.name == "Name");
    (!declared).then(
        || json!({ "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" }),
    )
}

/// The column formats that a CRD supports; other formats are hints for tables of this server.
const FORMATS: [&str; 8] = [
    "int32",
    "int64",
    "float",
    "double",
    "byte",
    "date",
    "date-time",
    "password",
];

/// A printer column; `None` for a column computed by a function, which a CRD cannot have.
fn column(column: &Column) -> Option<Value> {
    let path = match &column.source {
        CellSource::Path(path) => path.to_string(),
        CellSource::Query(query) => query.to_string(),
        CellSource::With(_) => return None,
    };
    let mut out =
        json!({ "name": column.name, "type": type_name(column.column_type), "jsonPath": path });
    if FORMATS.contains(&column.format.as_str()) {
        out["format"] = column.format.as_str().into();
    }
    if !column.description.is_empty() {
        out["description"] = column.description.as_str().into();
    }
    if column.priority != 0 {
        out["priority"] = column.priority.into();
    }
    Some(out)
}

#[cfg(test)]
mod tests;
