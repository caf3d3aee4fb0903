//! The kinds as documents for people and other tools: CustomResourceDefinitions, and the dump that the generator writes
//! into files.

use apiloom_meta::kind::{CellSource, Column, ColumnType, Scope};
use apiloom_meta::schema::Metadata;
use serde_json::{Map, Value, json};

use super::openapi::{KindSource, Source, describe_root, forget_required_metadata};
use crate::registry::Registry;

/// Every document that the generator writes: an object from relative paths to documents.
///
/// `openapi/v2.json`, `openapi/v3/apis/GROUP/VERSION.json` and `crds/PLURAL.GROUP`. The core group, which every server
/// has, is left out.
pub fn dump(registry: &Registry) -> Value {
    documents(&Source::all(registry))
}

pub(crate) fn documents(sources: &[Source]) -> Value {
    let own = sources.iter().filter(|source| !source.group.is_empty());
    let mut files = Map::new();
    files.insert("openapi/v2.json".into(), Source::v2(own.clone()));
    for source in own {
        files.insert(format!("openapi/v3/{}.json", source.key()), source.v3());
    }
    for crd in definitions(sources) {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        files.insert(format!("crds/{name}"), crd);
    }
    Value::Object(files)
}

/// One CustomResourceDefinition for each resource, in order of registration.
fn definitions(sources: &[Source]) -> Vec<Value> {
    let kinds: Vec<&KindSource> = sources
        .iter()
        .flat_map(|source| &source.kinds)
        .filter(|kind| !kind.def.group.is_empty())
        .collect();
    let mut resources = Vec::new();
    for kind in &kinds {
        let resource = kind.def.group_resource();
        if !resources.contains(&resource) {
            resources.push(resource);
        }
    }
    let versions_of = |resource| {
        kinds
            .iter()
            .copied()
            .filter(|kind| kind.def.group_resource() == resource)
            .collect::<Vec<_>>()
    };
    resources
        .into_iter()
        .filter_map(|resource| definition(&versions_of(resource)))
        .collect()
}

/// Names come from the storage version, as there can be one spelling only.
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
        names["shortNames"] = def.short_names.into();
    }
    if !def.categories.is_empty() {
        names["categories"] = def.categories.into();
    }
    Some(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{}", def.plural, def.group) },
        "spec": {
            "group": def.group,
            "names": names,
            "scope": if def.scope == Scope::Namespaced { "Namespaced" } else { "Cluster" },
            "versions": versions.iter().map(|kind| version(kind)).collect::<Vec<_>>(),
        },
    }))
}

fn version(kind: &KindSource) -> Value {
    let def = &kind.def;
    let mut version = json!({
        "name": def.version,
        "served": def.served,
        "storage": def.storage,
        "schema": { "openAPIV3Schema": schema(kind) },
    });
    if def.status {
        version["subresources"] = json!({ "status": {} });
    }
    let columns: Vec<Value> = def.columns.iter().filter_map(column).collect();
    if !columns.is_empty() {
        version["additionalPrinterColumns"] = columns.into();
    }
    if !def.selectable.is_empty() {
        let fields = def
            .selectable
            .iter()
            .map(|path| json!({ "jsonPath": path.to_string() }));
        version["selectableFields"] = fields.collect();
    }
    if let Some(warning) = &kind.deprecation_warning {
        version["deprecated"] = true.into();
        version["deprecationWarning"] = warning.as_str().into();
    }
    version
}

/// A CRD may say nothing about metadata but that it is an object.
fn schema(kind: &KindSource) -> Value {
    let mut schema = (kind.schema)(&Metadata::Open);
    describe_root(&mut schema, &kind.def);
    forget_required_metadata(&mut schema);
    schema
}

/// A column that a function computes has no path, so a CRD cannot have it.
fn column(column: &Column) -> Option<Value> {
    let CellSource::Path(path) = &column.source else {
        return None;
    };
    let mut out = json!({ "name": column.name, "type": type_name(column.column_type), "jsonPath": path.to_string() });
    if !column.format.is_empty() {
        out["format"] = column.format.into();
    }
    if !column.description.is_empty() {
        out["description"] = column.description.into();
    }
    if column.priority != 0 {
        out["priority"] = column.priority.into();
    }
    Some(out)
}

fn type_name(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::String => "string",
        ColumnType::Integer => "integer",
        ColumnType::Number => "number",
        ColumnType::Boolean => "boolean",
        ColumnType::Date => "date",
    }
}

#[cfg(test)]
mod tests;
