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
    pub(crate) methods: Vec<MethodView>,
}

/// One method.
#[derive(Debug, Serialize)]
pub(crate) struct MethodView {
    pub(crate) doc: String,
    pub(crate) name: String,
    /// Parameters after `&self`, each with a comma before it.
    pub(crate) parameters: String,
    /// The type of the request.
    pub(crate) request: String,
    /// The call of the client.
    pub(crate) call: String,
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
        let methods: Vec<MethodView> = methods.chain(connections).collect();
        (!methods.is_empty()).then(|| KindMethods {
            plural: kind.plural.clone(),
            name: format!("{}Methods", kind.kind),
            rust_type: kind.rust_type.clone(),
            methods,
        })
    }
}

fn method(method: &Method) -> MethodView {
    let sub = method.subresource.as_deref().map(literal);
    let below = match &sub {
        Some(sub) => format!("Some({sub})"),
        None => "None".to_owned(),
    };
    let of_object = match &sub {
        Some(sub) => format!("Some(({sub}, name))"),
        None => "None".to_owned(),
    };
    let name = if sub.is_some() { ", name: &str" } else { "" };
    let output = &method.output;
    let input = method.input.as_deref().unwrap_or(output);
    let (verb, parameters, request, call) = match method.verb.as_str() {
        "get" => (
            "Reads",
            ", name: &str".to_owned(),
            format!("GetRequest<{output}>"),
            format!("get_as({below}, name)"),
        ),
        "list" => (
            "Lists",
            name.to_owned(),
            format!("ListRequest<{output}>"),
            format!("list_as({of_object})"),
        ),
        "create" => (
            "Creates",
            format!("{name}, body: &{input}"),
            format!("WriteRequest<{output}>"),
            format!("create_as({of_object}, body)"),
        ),
        "update" => (
            "Replaces",
            format!(", name: &str, body: &{input}"),
            format!("WriteRequest<{output}>"),
            format!("update_as({below}, name, body)"),
        ),
        "patch" => (
            "Patches",
            ", name: &str, patch: Patch".to_owned(),
            format!("PatchRequest<{output}>"),
            format!("patch_as({below}, name, patch)"),
        ),
        _ => (
            "Applies a configuration to",
            ", name: &str, configuration: &(impl Serialize + ?Sized), field_manager: &str"
                .to_owned(),
            format!("PatchRequest<{output}>"),
            format!("apply_as::<{input}, _>({below}, name, configuration, field_manager)"),
        ),
    };
    let what = match (&method.subresource, method.verb.as_str()) {
        (Some(sub), _) => format!("the subresource `{sub}` of an object"),
        (None, "list") => "the objects".to_owned(),
        (None, _) => "an object".to_owned(),
    };
    MethodView {
        doc: format!("{verb} {what}."),
        name: method.name.clone(),
        parameters,
        request,
        call,
    }
}

fn connection(connection: &Connection) -> MethodView {
    let sub = literal(&connection.subresource);
    let method = |verb: &str| match verb {
        "create" => "POST",
        "delete" => "DELETE",
        "patch" => "PATCH",
        "update" => "PUT",
        _ => "GET",
    };
    let (parameters, call) = match connection.verbs.as_slice() {
        [only] => (
            ", name: &str",
            format!("connect(Method::{}, {sub}, name)", method(only)),
        ),
        _ => (
            ", method: Method, name: &str",
            format!("connect(method, {sub}, name)"),
        ),
    };
    MethodView {
        doc: format!(
            "Opens a stream of the subresource `{}` of an object.",
            connection.subresource
        ),
        name: connection.name.clone(),
        parameters: parameters.to_owned(),
        request: "RawRequest".to_owned(),
        call,
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
