//! The view of `kube.rs`: types for kube-rs, by group and version.

use apiloom_model::names::identifier;
use serde::Serialize;

use super::api_version;
use super::clientset::{version_method, versions_with_kinds};
use crate::model::{Kind, Model};

/// `kube.rs`.
#[derive(Debug, Serialize)]
pub(crate) struct KubeView {
    pub(crate) package: String,
    pub(crate) versions: Vec<VersionModule>,
}

/// The kinds of one group and version.
#[derive(Debug, Serialize)]
pub(crate) struct VersionModule {
    /// `wardle.example.com/v1alpha1`.
    pub(crate) api_version: String,
    /// `wardle_v1alpha1`.
    pub(crate) module: String,
    pub(crate) kinds: Vec<KubeKind>,
}

/// A type for kube-rs.
#[derive(Debug, Serialize)]
pub(crate) struct KubeKind {
    pub(crate) name: String,
    /// The type of the fields.
    pub(crate) rust_type: String,
    /// The scope, as kube-rs calls it.
    pub(crate) scope: &'static str,
}

impl KubeView {
    pub(crate) fn new(model: &Model) -> KubeView {
        let versions = versions_with_kinds(model).map(|(group, version, kinds)| VersionModule {
            api_version: api_version(group, version),
            module: version_method(model, group, version),
            kinds: kinds.into_iter().map(KubeKind::new).collect(),
        });
        KubeView {
            package: model.package.clone(),
            versions: versions.collect(),
        }
    }
}

impl KubeKind {
    fn new(kind: &Kind) -> KubeKind {
        KubeKind {
            name: identifier(&kind.kind),
            rust_type: kind.rust_type.clone(),
            scope: if kind.namespaced {
                "NamespaceResourceScope"
            } else {
                "ClusterResourceScope"
            },
        }
    }
}
