//! The resources of a version of another server, as aggregated discovery has them.

use serde::{Deserialize, Serialize};

/// A resource, in the form and with the order of fields of apidiscovery.k8s.io/v2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RemoteResource {
    pub(crate) resource: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response_kind: Option<RemoteKind>,
    pub(crate) scope: String,
    pub(crate) singular_resource: String,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_empty")]
    pub(crate) short_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_empty")]
    pub(crate) categories: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "or_empty")]
    pub(crate) subresources: Vec<RemoteSubresource>,
}

/// A subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RemoteSubresource {
    subresource: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_kind: Option<RemoteKind>,
    #[serde(deserialize_with = "or_empty")]
    verbs: Vec<String>,
}

/// The kind of responses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RemoteKind {
    group: String,
    version: String,
    kind: String,
}

/// Go's encoder writes null for a missing list.
fn or_empty<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[derive(Deserialize)]
struct GroupList {
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    metadata: Metadata,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Option<Vec<RemoteResource>>,
}

/// The resources of a version in an aggregated document; `None` if it does not list the version.
///
/// # Errors
/// If it is no such document.
pub(crate) fn of_discovery(
    document: &[u8],
    group: &str,
    version: &str,
) -> Result<Option<Vec<RemoteResource>>, serde_json::Error> {
    let list: GroupList = serde_json::from_slice(document)?;
    let groups = list.items.into_iter();
    let mut groups = groups.filter(|of| of.metadata.name == group);
    let versions = groups.next().map(|of| of.versions).unwrap_or_default();
    let found = versions.into_iter().find(|of| of.version == version);
    Ok(found.map(|of| of.resources.unwrap_or_default()))
}

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<ListedResource>,
}

/// An entry of an APIResourceList. The names of subresources have the resource before a slash.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListedResource {
    name: String,
    singular_name: String,
    namespaced: bool,
    group: String,
    version: String,
    kind: String,
    #[serde(deserialize_with = "or_empty")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    short_names: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    categories: Vec<String>,
}

/// The resources of an APIResourceList, as servers without aggregated discovery have it.
///
/// # Errors
/// If it is no such list.
pub(crate) fn of_resource_list(
    list: &[u8],
    group: &str,
    version: &str,
) -> Result<Vec<RemoteResource>, serde_json::Error> {
    let list: ResourceList = serde_json::from_slice(list)?;
    let or = |text: &str, usual: &str| if text.is_empty() { usual } else { text }.to_owned();
    let kind = |of: &ListedResource| RemoteKind {
        group: or(&of.group, group),
        version: or(&of.version, version),
        kind: of.kind.clone(),
    };
    let (below, whole): (Vec<_>, Vec<_>) = list
        .resources
        .into_iter()
        .partition(|of| of.name.contains('/'));
    let mut resources: Vec<RemoteResource> = whole
        .into_iter()
        .map(|of| RemoteResource {
            response_kind: Some(kind(&of)),
            resource: of.name,
            scope: scope(of.namespaced),
            singular_resource: of.singular_name,
            verbs: of.verbs,
            short_names: of.short_names,
            categories: of.categories,
            subresources: Vec::new(),
        })
        .collect();
    for of in below {
        let Some((resource, subresource)) = of.name.split_once('/') else {
            continue;
        };
        let position = resources.iter().position(|one| one.resource == resource);
        let position = position.unwrap_or_else(|| {
            resources.push(parent(resource, of.namespaced));
            resources.len() - 1
        });
        resources[position].subresources.push(RemoteSubresource {
            subresource: subresource.to_owned(),
            response_kind: Some(kind(&of)),
            verbs: of.verbs,
        });
    }
    Ok(resources)
}

fn scope(is_namespaced: bool) -> String {
    if is_namespaced {
        "Namespaced"
    } else {
        "Cluster"
    }
    .to_owned()
}

/// The entry that has the subresources of a resource which is not listed itself: without verbs and of no kind.
fn parent(resource: &str, is_namespaced: bool) -> RemoteResource {
    RemoteResource {
        resource: resource.to_owned(),
        response_kind: Some(RemoteKind::default()),
        scope: scope(is_namespaced),
        ..RemoteResource::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_discovery_have_the_same_resources() {
        let aggregated = br#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"g.io"},"versions":[
            {"version":"v2","resources":null},
            {"version":"v1","freshness":"Current","resources":[{"resource":"things","responseKind":{"group":"g.io","version":"v1","kind":"Thing"},
            "scope":"Namespaced","singularResource":"thing","verbs":["get"],"shortNames":["th"],
            "subresources":[{"subresource":"status","responseKind":{"group":"g.io","version":"v1","kind":"Thing"},"verbs":["get"]}]}]}]}]}"#;
        let legacy = br#"{"kind":"APIResourceList","groupVersion":"g.io/v1","resources":[
            {"name":"things","singularName":"thing","namespaced":true,"kind":"Thing","verbs":["get"],"shortNames":["th"]},
            {"name":"things/status","singularName":"","namespaced":true,"kind":"Thing","verbs":["get"]}]}"#;
        let of_aggregated = of_discovery(aggregated, "g.io", "v1").unwrap().unwrap();
        assert_eq!(
            of_resource_list(legacy, "g.io", "v1").unwrap(),
            of_aggregated
        );
        assert_eq!(of_aggregated[0].subresources.len(), 1);
        assert_eq!(
            of_discovery(aggregated, "g.io", "v2").unwrap(),
            Some(vec![])
        );
        assert_eq!(of_discovery(aggregated, "g.io", "v3").unwrap(), None);
        assert_eq!(of_discovery(aggregated, "h.io", "v1").unwrap(), None);
        assert!(of_discovery(b"<html>", "g.io", "v1").is_err());
        assert!(of_resource_list(b"{}", "g.io", "v1").is_err());
    }

    #[test]
    fn a_subresource_without_its_resource_is_listed_below_an_empty_one() {
        let list = br#"{"resources":[
            {"name":"nodes/metrics","singularName":"","namespaced":false,"kind":"NodeMetrics","verbs":["get"]},
            {"name":"nodes/proxy","singularName":"","namespaced":false,"kind":"NodeProxy","verbs":["create"]},
            {"name":"things","singularName":"thing","namespaced":true,"kind":"Thing","verbs":["get"]}]}"#;
        let resources = of_resource_list(list, "g.io", "v1").unwrap();
        assert_eq!(resources[0].resource, "things");
        let expected = r#"{"resource":"nodes","responseKind":{"group":"","version":"","kind":""},"scope":"Cluster","singularResource":"","verbs":[],"subresources":[{"subresource":"metrics","responseKind":{"group":"g.io","version":"v1","kind":"NodeMetrics"},"verbs":["get"]},{"subresource":"proxy","responseKind":{"group":"g.io","version":"v1","kind":"NodeProxy"},"verbs":["create"]}]}"#;
        assert_eq!(serde_json::to_string(&resources[1]).unwrap(), expected);
        assert_eq!(resources.len(), 2);
    }
}
