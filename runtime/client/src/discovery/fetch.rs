//! Reads discovery documents: the aggregated ones in two requests, else one for each group and version.

use apiloom_meta::gvk::GroupVersion;
use futures_util::{StreamExt as _, stream};
use http::Method;
use serde::{Deserialize, Deserializer};

use super::resources::{DiscoveredResource, Discovery};
use crate::client::{ApiResource, Client};
use crate::error::Error;

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// How many documents are asked for at the same time, and at most: a server has some dozens.
const SIDE_BY_SIDE: usize = 16;
const MAX_DOCUMENTS: usize = 2_000;

/// What `/api` and `/apis` answer.
#[derive(Deserialize)]
#[serde(tag = "kind")]
enum Root {
    #[serde(rename = "APIGroupDiscoveryList")]
    Aggregated {
        #[serde(default)]
        items: Option<Vec<Group>>,
    },
    #[serde(rename = "APIGroupList")]
    Groups {
        #[serde(default)]
        groups: Option<Vec<LegacyGroup>>,
    },
    #[serde(rename = "APIVersions")]
    Core {
        #[serde(default)]
        versions: Option<Vec<String>>,
    },
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Group {
    #[serde(deserialize_with = "or_empty")]
    metadata: apiloom_meta::ObjectMeta,
    #[serde(deserialize_with = "or_empty")]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    #[serde(deserialize_with = "or_empty")]
    version: String,
    #[serde(deserialize_with = "or_empty")]
    freshness: String,
    #[serde(deserialize_with = "or_empty")]
    resources: Vec<Resource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Resource {
    #[serde(deserialize_with = "or_empty")]
    resource: String,
    response_kind: Option<Kind>,
    #[serde(deserialize_with = "or_empty")]
    scope: String,
    #[serde(deserialize_with = "or_empty")]
    singular_resource: String,
    #[serde(deserialize_with = "or_empty")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    short_names: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    categories: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    subresources: Vec<Subresource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    #[serde(deserialize_with = "or_empty")]
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Subresource {
    #[serde(deserialize_with = "or_empty")]
    subresource: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LegacyGroup {
    #[serde(deserialize_with = "or_empty")]
    name: String,
    #[serde(deserialize_with = "or_empty")]
    versions: Vec<LegacyVersion>,
    #[serde(deserialize_with = "or_empty")]
    preferred_version: LegacyVersion,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct LegacyVersion {
    #[serde(deserialize_with = "or_empty")]
    version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LegacyResources {
    resources: Option<Vec<LegacyResource>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LegacyResource {
    #[serde(deserialize_with = "or_empty")]
    name: String,
    #[serde(deserialize_with = "or_empty")]
    singular_name: String,
    #[serde(deserialize_with = "or_empty")]
    namespaced: bool,
    #[serde(deserialize_with = "or_empty")]
    kind: String,
    #[serde(deserialize_with = "or_empty")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    short_names: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    categories: Vec<String>,
}

/// A value that may be `null`, as servers in Go write empty ones.
fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Discovery {
    /// Reads what the server has. Groups of other servers that do not answer are left out, and listed as incomplete.
    ///
    /// # Errors
    /// If the server itself does not answer.
    pub async fn read(client: &Client) -> Result<Self, Error> {
        let mut discovery = Self::default();
        for path in ["/api", "/apis"] {
            match root(client, path).await? {
                Some(Root::Aggregated { items }) => {
                    discovery.add_aggregated(items.unwrap_or_default());
                }
                Some(Root::Groups { groups }) => {
                    let groups = groups.unwrap_or_default();
                    let versions = groups.into_iter().flat_map(ordered).collect();
                    discovery.add_legacy(client, versions).await;
                }
                Some(Root::Core { versions }) => {
                    let versions = versions.unwrap_or_default().into_iter();
                    let versions = versions.map(|version| GroupVersion::new("", version));
                    discovery.add_legacy(client, versions.collect()).await;
                }
                None => {}
            }
        }
        Ok(discovery)
    }

    fn add_aggregated(&mut self, groups: Vec<Group>) {
        for group in groups {
            let name = group.metadata.name.unwrap_or_default();
            for version in group.versions {
                if version.freshness == "Stale" {
                    let stale = GroupVersion::new(&name, &version.version);
                    self.incomplete.push(stale);
                }
                for resource in version.resources {
                    // A parent that has subresources and no objects has no kind.
                    let kind = resource.response_kind.unwrap_or_default().kind;
                    if kind.is_empty() {
                        continue;
                    }
                    let subresources = resource.subresources.into_iter();
                    self.resources.push(DiscoveredResource {
                        resource: ApiResource::new(
                            &*name,
                            &*version.version,
                            kind,
                            resource.resource,
                        ),
                        singular: resource.singular_resource,
                        short_names: resource.short_names,
                        categories: resource.categories,
                        is_namespaced: resource.scope == "Namespaced",
                        verbs: resource.verbs,
                        subresources: subresources.map(|sub| sub.subresource).collect(),
                    });
                }
            }
        }
    }

    async fn add_legacy(&mut self, client: &Client, mut versions: Vec<GroupVersion>) {
        if versions.len() > MAX_DOCUMENTS {
            let left_out = versions.split_off(MAX_DOCUMENTS);
            tracing::warn!(
                "the resources of {} versions are not asked for: the server has more than {MAX_DOCUMENTS}",
                left_out.len()
            );
            self.incomplete.extend(left_out);
        }
        let documents = versions.iter().map(async |version| {
            let prefix = if version.group.is_empty() {
                "/api"
            } else {
                "/apis"
            };
            let request = client.request(Method::GET, format!("{prefix}/{version}"));
            request.json::<LegacyResources>().await
        });
        let documents = stream::iter(documents).buffered(SIDE_BY_SIDE);
        let documents: Vec<_> = documents.collect().await;
        for (version, document) in versions.into_iter().zip(documents) {
            match document {
                Ok(document) => self.add_legacy_version(&version, document),
                Err(error) => {
                    tracing::warn!("the resources of {version} are unknown: {error}");
                    self.incomplete.push(version);
                }
            }
        }
    }

    fn add_legacy_version(&mut self, version: &GroupVersion, document: LegacyResources) {
        let all = document.resources.unwrap_or_default();
        let (subresources, parents): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|found| found.name.contains('/'));
        for parent in parents {
            let own = subresources.iter().filter_map(|sub| {
                let (of, name) = sub.name.split_once('/')?;
                (of == parent.name).then(|| name.to_owned())
            });
            self.resources.push(DiscoveredResource {
                subresources: own.collect(),
                resource: ApiResource::new(
                    &*version.group,
                    &*version.version,
                    parent.kind,
                    parent.name,
                ),
                singular: parent.singular_name,
                short_names: parent.short_names,
                categories: parent.categories,
                is_namespaced: parent.namespaced,
                verbs: parent.verbs,
            });
        }
    }
}

/// The document at a root; `None` if the server has no groups of this form.
async fn root(client: &Client, path: &str) -> Result<Option<Root>, Error> {
    let aggregated = client.request(Method::GET, path).accept(AGGREGATED);
    match aggregated.json().await {
        Ok(root) => Ok(Some(root)),
        Err(error) if error.is_not_found() => Ok(None),
        // A server before aggregated discovery that refuses what it does not know.
        Err(error) if error.code() == Some(406) => {
            client.request(Method::GET, path).json().await.map(Some)
        }
        Err(error) => Err(error),
    }
}

/// The versions of a group, the preferred one first.
fn ordered(group: LegacyGroup) -> Vec<GroupVersion> {
    let preferred = &group.preferred_version.version;
    let (mut versions, others): (Vec<_>, Vec<_>) = group
        .versions
        .iter()
        .partition(|found| found.version == *preferred);
    versions.extend(others);
    let versions = versions.into_iter();
    versions
        .map(|found| GroupVersion::new(&*group.name, &*found.version))
        .collect()
}
