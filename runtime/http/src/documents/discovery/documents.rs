//! The types of the discovery documents, with keys in kube-apiserver's order, and their construction.

use std::collections::BTreeMap;

use apiloom_meta::ResourceDef;
use apiloom_meta::kind::{ProtobufMessage, Publication, Scope, SmolStr, SubresourceDef, Verb};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::Serialize;

use super::messages::{API_VERSIONS, GROUP, GROUP_LIST, RESOURCE_LIST};
use crate::documents::served::{Group, Kind, RemoteResource, Version, listed_verbs};

/// A legacy document.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// Compact JSON with a newline.
    pub(super) json: Bytes,
    /// Its message in Protobuf.
    pub(super) message: &'static ProtobufMessage,
}

impl Document {
    fn new(document: &impl Serialize, message: &'static ProtobufMessage) -> Self {
        Self {
            json: json(document),
            message,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiVersions<'a> {
    kind: &'static str,
    versions: Vec<&'a str>,
    #[serde(rename = "serverAddressByClientCIDRs")]
    addresses: [ServerAddress<'a>; 1],
}

#[derive(Serialize)]
struct ServerAddress<'a> {
    #[serde(rename = "clientCIDR")]
    client_cidr: &'static str,
    #[serde(rename = "serverAddress")]
    server_address: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroupList<'a> {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<ApiGroup<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroup<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'static str,
    name: &'a str,
    versions: Vec<GroupVersion<'a>>,
    preferred_version: GroupVersion<'a>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion<'a> {
    group_version: String,
    version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResourceList<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'static str,
    group_version: String,
    resources: Vec<ApiResource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    kind: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    short_names: &'a [SmolStr],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    categories: &'a [SmolStr],
    #[serde(skip_serializing_if = "String::is_empty")]
    storage_version_hash: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupDiscoveryList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    items: Vec<GroupDiscovery<'a>>,
}

#[derive(Default, Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct GroupDiscovery<'a> {
    metadata: Metadata<'a>,
    versions: Vec<VersionDiscovery<'a>>,
}

#[derive(Serialize)]
struct VersionDiscovery<'a> {
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<ResourcesDiscovery<'a>>,
    freshness: &'static str,
}

/// The resources of a version: of this server, or of another one.
#[derive(Serialize)]
#[serde(untagged)]
enum ResourcesDiscovery<'a> {
    Own(Vec<ResourceDiscovery<'a>>),
    Remote(&'a [RemoteResource]),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery<'a> {
    resource: &'a str,
    response_kind: ResponseKind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: Vec<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    short_names: &'a [SmolStr],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    categories: &'a [SmolStr],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceDiscovery<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceDiscovery<'a> {
    subresource: &'a str,
    response_kind: ResponseKind<'a>,
    verbs: Vec<&'static str>,
}

/// Group and version are empty if they are equal to those of the enclosing list.
#[derive(Clone, Copy, Serialize)]
struct ResponseKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// All legacy documents by path.
pub(super) fn legacy(groups: &[Group<'_>], server_address: &str) -> BTreeMap<String, Document> {
    let mut documents = BTreeMap::new();
    let (core, named): (Vec<_>, Vec<_>) = groups.iter().partition(|group| group.name.is_empty());
    let core_versions: Vec<&str> = core
        .iter()
        .flat_map(|group| group.versions.iter().map(|v| v.name))
        .collect();
    let versions = api_versions(core_versions, server_address);
    documents.insert("/api".to_owned(), Document::new(&versions, &API_VERSIONS));
    let is_own = |version: &&Version<'_>| version.remote.is_none();
    let of_core = core.iter().flat_map(|group| &group.versions);
    for version in of_core.filter(is_own) {
        documents.insert(
            format!("/api/{}", version.name),
            Document::new(&resource_list("", version), &RESOURCE_LIST),
        );
    }
    let list = named
        .iter()
        .filter_map(|group| api_group(group, false))
        .collect();
    let list = ApiGroupList {
        kind: "APIGroupList",
        api_version: "v1",
        groups: list,
    };
    documents.insert("/apis".to_owned(), Document::new(&list, &GROUP_LIST));
    for group in named {
        if let Some(document) = api_group(group, true) {
            documents.insert(
                format!("/apis/{}", group.name),
                Document::new(&document, &GROUP),
            );
        }
        // Requests for the others are forwarded.
        for version in group.versions.iter().filter(is_own) {
            documents.insert(
                format!("/apis/{}/{}", group.name, version.name),
                Document::new(&resource_list(group.name, version), &RESOURCE_LIST),
            );
        }
    }
    documents
}

/// The aggregated documents: core at `/api`, all other groups at `/apis`.
pub(super) fn aggregated(groups: &[Group<'_>]) -> [(&'static str, Bytes); 2] {
    let list = |core: bool| {
        let items = groups
            .iter()
            .filter(|group| group.name.is_empty() == core)
            .map(group_discovery)
            .collect();
        json(&GroupDiscoveryList {
            kind: "APIGroupDiscoveryList",
            api_version: "apidiscovery.k8s.io/v2",
            metadata: Metadata::default(),
            items,
        })
    };
    [("/api", list(true)), ("/apis", list(false))]
}

/// `storageVersionHash`: base64 of the first 8 bytes of the SHA-256 of `group/version/kind` of the storage version, so
/// that it changes with the storage version. Empty for a kind without a store.
pub(crate) fn storage_version_hash(kind: &Kind<'_>) -> String {
    if !kind.def.has_store {
        return String::new();
    }
    let text = format!(
        "{}/{}/{}",
        kind.def.group, kind.storage_version, kind.def.kind
    );
    BASE64_STANDARD.encode(&digest(&SHA256, text.as_bytes()).as_ref()[..8])
}

fn api_versions<'a>(versions: Vec<&'a str>, server_address: &'a str) -> ApiVersions<'a> {
    let everyone = ServerAddress {
        client_cidr: "0.0.0.0/0",
        server_address,
    };
    ApiVersions {
        kind: "APIVersions",
        versions,
        addresses: [everyone],
    }
}

/// A group of discovery; `None` without served versions.
fn api_group<'a>(group: &Group<'a>, alone: bool) -> Option<ApiGroup<'a>> {
    let version = |v: &Version<'a>| GroupVersion {
        group_version: group_version(group.name, v.name),
        version: v.name,
    };
    let versions: Vec<_> = group.versions.iter().map(version).collect();
    let preferred_version = versions.first()?.clone();
    let (kind, api_version) = if alone { ("APIGroup", "v1") } else { ("", "") };
    Some(ApiGroup {
        kind,
        api_version,
        name: group.name,
        versions,
        preferred_version,
    })
}

fn resource_list<'a>(group: &str, version: &Version<'a>) -> ApiResourceList<'a> {
    ApiResourceList {
        kind: "APIResourceList",
        // The list of the core group has no `apiVersion`, for compatibility.
        api_version: if group.is_empty() { "" } else { "v1" },
        group_version: group_version(group, version.name),
        resources: version.kinds.iter().flat_map(api_resources).collect(),
    }
}

/// The entry of a kind, followed by those of its subresources.
fn api_resources<'a>(kind: &Kind<'a>) -> Vec<ApiResource<'a>> {
    let def = kind.def;
    let entry = ApiResource {
        name: def.plural.to_string(),
        singular_name: &def.singular,
        namespaced: is_namespaced(def),
        group: "",
        version: "",
        kind: &def.kind,
        verbs: names(listed_verbs(kind)),
        short_names: &def.short_names,
        categories: &def.categories,
        storage_version_hash: storage_version_hash(kind),
    };
    let below = def.served_subresources().map(|sub| {
        let ResponseKind {
            group,
            version,
            kind,
        } = response_kind(def, Some(sub));
        ApiResource {
            name: format!("{}/{}", def.plural, sub.name),
            singular_name: "",
            namespaced: is_namespaced(def),
            group,
            version,
            kind,
            verbs: names(def.verbs_of(sub)),
            short_names: &[],
            categories: &[],
            storage_version_hash: String::new(),
        }
    });
    std::iter::once(entry).chain(below).collect()
}

fn group_discovery<'a>(group: &Group<'a>) -> GroupDiscovery<'a> {
    let version = |version: &Version<'a>| VersionDiscovery {
        version: version.name,
        resources: match version.remote {
            None => {
                let kinds = version.kinds.iter().map(resource_discovery);
                Some(ResourcesDiscovery::Own(kinds.collect()))
            }
            Some(remote) => {
                let resources = remote.resources.filter(|all| !all.is_empty());
                resources.map(ResourcesDiscovery::Remote)
            }
        },
        freshness: match version.remote {
            Some(remote) if !remote.is_fresh => "Stale",
            _ => "Current",
        },
    };
    GroupDiscovery {
        metadata: Metadata { name: group.name },
        versions: group.versions.iter().map(version).collect(),
    }
}

fn resource_discovery<'a>(kind: &Kind<'a>) -> ResourceDiscovery<'a> {
    let def = kind.def;
    let below = |sub: &'a SubresourceDef| SubresourceDiscovery {
        subresource: &sub.name,
        response_kind: aggregated_kind(def, Some(sub)),
        verbs: names(def.verbs_of(sub)),
    };
    ResourceDiscovery {
        resource: &def.plural,
        response_kind: aggregated_kind(def, None),
        scope: if is_namespaced(def) {
            "Namespaced"
        } else {
            "Cluster"
        },
        singular_resource: &def.singular,
        verbs: names(listed_verbs(kind)),
        short_names: &def.short_names,
        categories: &def.categories,
        subresources: def.served_subresources().map(below).collect(),
    }
}

/// The kind of responses; group and version are left empty for the resource's own kind.
fn response_kind<'a>(def: &'a ResourceDef, sub: Option<&'a SubresourceDef>) -> ResponseKind<'a> {
    match sub.and_then(SubresourceDef::listed_kind) {
        Some(output) => ResponseKind {
            group: &output.group,
            version: &output.version,
            kind: &output.kind,
        },
        None => ResponseKind {
            group: "",
            version: "",
            kind: &def.kind,
        },
    }
}

/// The kind of responses in aggregated documents, where that of a definition names its own group and version.
fn aggregated_kind<'a>(def: &'a ResourceDef, sub: Option<&'a SubresourceDef>) -> ResponseKind<'a> {
    let kind = response_kind(def, sub);
    if def.dialect.discovery == Publication::Definition && kind.version.is_empty() {
        return ResponseKind {
            group: &def.group,
            version: &def.version,
            ..kind
        };
    }
    kind
}

fn is_namespaced(def: &ResourceDef) -> bool {
    def.scope == Scope::Namespaced
}

fn names(verbs: impl Iterator<Item = Verb>) -> Vec<&'static str> {
    verbs.map(Verb::as_str).collect()
}

fn group_version(group: &str, version: &str) -> String {
    apiloom_meta::GroupVersion::new(group, version).to_string()
}

/// Compact JSON with a newline, as in Kubernetes. The documents contain only names, which need no escapes.
fn json(document: &impl Serialize) -> Bytes {
    let mut bytes = serde_json::to_vec(document).unwrap_or_default();
    bytes.push(b'\n');
    // Up to half of the buffer is spare capacity.
    bytes.shrink_to_fit();
    bytes.into()
}
