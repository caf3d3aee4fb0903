//! The views of `methods.rs` and `index.rs`: what the clients and local copies of single kinds have.

use std::collections::BTreeMap;

use apiloom_model::names::identifier;
use serde::Serialize;

use super::clientset::{camel_case, version_method, versions_with_kinds};
use super::{api_version, literal};
use crate::model::{Connection, Index, Kind, Method, Model};

/// `methods.rs`.
#[derive(Debug, Serialize)]
pub(crate) struct MethodsView {
    pub(crate) package: String,
    pub(crate) versions: Vec<VersionMethods>,
}

/// The methods of one group and version.
#[derive(Debug, Serialize)]
pub(crate) struct VersionMethods {
    /// `wardle.example.com/v1alpha1`.
    pub(crate) api_version: String,
    /// `wardle_v1alpha1`.
    pub(crate) module: String,
    pub(crate) kinds: Vec<KindMethods>,
}

/// The methods of one kind.
#[derive(Debug, Serialize)]
pub(crate) struct KindMethods {
    pub(crate) plural: String,
    /// `FlunderMethods`.
    pub(crate) name: String,
    pub(crate) rust_type: String,
    /// Each in the words of `methods!`: `get power_of "power" -> crate::v1::Power`.
    pub(crate) methods: Vec<String>,
}

/// `index.rs`.
#[derive(Debug, Serialize)]
pub(crate) struct IndexesView {
    pub(crate) package: String,
    pub(crate) indexes: Vec<IndexView>,
}

/// One index, of any number of kinds.
#[derive(Debug, Serialize)]
pub(crate) struct IndexView {
    pub(crate) name: String,
    /// The name as a Rust string literal.
    pub(crate) literal: String,
    /// The type.
    pub(crate) rust_name: String,
    pub(crate) kinds: Vec<IndexedKind>,
}

/// A kind that has an index.
#[derive(Debug, Serialize)]
pub(crate) struct IndexedKind {
    pub(crate) rust_type: String,
    pub(crate) key: String,
    /// The expression of the value of the field.
    pub(crate) value: String,
}

impl MethodsView {
    /// `None` if no kind has a method.
    pub(crate) fn new(model: &Model) -> Option<MethodsView> {
        let mut versions = Vec::new();
        for (group, version, kinds) in versions_with_kinds(model) {
            let kinds: Vec<KindMethods> = kinds.into_iter().filter_map(KindMethods::new).collect();
            if !kinds.is_empty() {
                versions.push(VersionMethods {
                    api_version: api_version(group, version),
                    module: version_method(model, group, version),
                    kinds,
                });
            }
        }
        (!versions.is_empty()).then(|| MethodsView {
            package: model.package.clone(),
            versions,
        })
    }
}

impl KindMethods {
    fn new(kind: &Kind) -> Option<KindMethods> {
        let methods = kind.client.methods.iter().map(method);
        let connections = kind.client.connections.iter().map(connection);
        let methods: Vec<String> = methods.chain(connections).collect();
        (!methods.is_empty()).then(|| KindMethods {
            plural: kind.plural.clone(),
            name: format!("{}Methods", kind.kind),
            rust_type: kind.rust_type.clone(),
            methods,
        })
    }
}

fn method(method: &Method) -> String {
    let below = below(method.subresource.as_deref());
    let input = method.input.as_ref().map(|input| format!(" ({input})"));
    format!(
        "{} {}{below}{} -> {}",
        method.verb,
        method.name,
        input.unwrap_or_default(),
        method.output
    )
}

fn connection(connection: &Connection) -> String {
    let below = below(Some(&connection.subresource));
    let only = match connection.verbs.as_slice() {
        [only] => format!(" ({})", http_method(only)),
        _ => String::new(),
    };
    format!("connect {}{below}{only}", connection.name)
}

/// The subresource behind the name of a method.
fn below(subresource: Option<&str>) -> String {
    subresource.map_or_else(String::new, |name| format!(" {}", literal(name)))
}

/// The method of HTTP by which a stream of a verb is opened.
fn http_method(verb: &str) -> &'static str {
    match verb {
        "create" => "POST",
        "delete" => "DELETE",
        "patch" => "PATCH",
        "update" => "PUT",
        _ => "GET",
    }
}

impl IndexesView {
    /// `None` if no kind has an index.
    pub(crate) fn new(model: &Model) -> Option<IndexesView> {
        let mut found: BTreeMap<&str, Vec<(&Kind, &Index)>> = BTreeMap::new();
        for (_, _, kinds) in versions_with_kinds(model) {
            for kind in kinds {
                for index in &kind.client.indexes {
                    found.entry(&index.name).or_default().push((kind, index));
                }
            }
        }
        let indexes = found.into_iter().map(|(name, kinds)| IndexView {
            name: name.to_owned(),
            literal: literal(name),
            rust_name: identifier(&camel_case(&name.replace('-', "_"))),
            kinds: kinds
                .into_iter()
                .map(|(kind, index)| IndexedKind {
                    rust_type: kind.rust_type.clone(),
                    key: index.key.clone(),
                    value: index.value.clone(),
                })
                .collect(),
        });
        let indexes: Vec<IndexView> = indexes.collect();
        (!indexes.is_empty()).then(|| IndexesView {
            package: model.package.clone(),
            indexes,
        })
    }
}
