//! The resources of a version of another server, as aggregated discovery has them. Clients of this server make paths of their
//! names, so malformed names, duplicates, and all above the bounds are left out.

use std::collections::{HashMap, HashSet};

use apiloom_meta::field::echoed;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

/// A resource, in the form and with the order of fields of apidiscovery.k8s.io/v2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteResource {
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
pub fn of_discovery(
    document: &[u8],
    group: &str,
    version: &str,
) -> Result<Option<Vec<RemoteResource>>, serde_json::Error> {
    let list: GroupList = serde_json::from_slice(document)?;
    let groups = list.items.into_iter();
    let mut groups = groups.filter(|of| of.metadata.name == group);
    let versions = groups.next().map(|of| of.versions).unwrap_or_default();
    let found = versions.into_iter().find(|of| of.version == version);
    Ok(found.map(|of| sound(of.resources.unwrap_or_default())))
}

/// Most bytes of all names of a version. A metrics server with a subresource for each of 1,000 metrics has 100 KiB.
const MAX_NAME_BYTES: usize = 512 * 1024;

/// Longest name.
const MAX_NAME: usize = 253;

/// The resources with names that can be used, each once, and within the bounds.
fn sound(resources: Vec<RemoteResource>) -> Vec<RemoteResource> {
    let mut room = MAX_NAME_BYTES;
    let mut known = HashSet::new();
    let mut kept = Vec::new();
    for mut of in resources {
        let is_scope = matches!(&*of.scope, "Namespaced" | "Cluster");
        let is_kind = of.response_kind.as_ref().is_none_or(RemoteKind::is_sound);
        let is_named = of.singular_resource.is_empty() || is_name(&of.singular_resource);
        if !is_scope || !is_kind || !is_named || !is_name(&of.resource) {
            continue;
        }
        if !known.insert(of.resource.clone()) {
            continue;
        }
        for names in [&mut of.verbs, &mut of.short_names, &mut of.categories] {
            keep_names(names);
        }
        let mut of_subresources = HashSet::new();
        of.subresources.retain_mut(|sub| {
            keep_names(&mut sub.verbs);
            let is_kind = sub.response_kind.as_ref().is_none_or(RemoteKind::is_sound);
            is_kind && is_name(&sub.subresource) && of_subresources.insert(sub.subresource.clone())
        });
        let bytes = of.name_bytes();
        if bytes > room {
            break;
        }
        room -= bytes;
        kept.push(of);
    }
    kept
}

/// Keeps what can be a name, each once.
fn keep_names(names: &mut Vec<String>) {
    let mut known = HashSet::new();
    names.retain(|name| is_name(name) && known.insert(name.clone()));
}

/// Whether a text can be one segment of a path. Names of metrics are resources too, with `_`, `:` and upper-case letters.
fn is_name(text: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_graphic() && !b"/%?#\\\"<>".contains(&byte);
    !text.is_empty()
        && text.len() <= MAX_NAME
        && !matches!(text, "." | "..")
        && text.bytes().all(is_of_name)
}

impl RemoteKind {
    /// Whether its parts are names; each may be left out.
    fn is_sound(&self) -> bool {
        let mut parts = [&self.group, &self.version, &self.kind].into_iter();
        parts.all(|part| part.is_empty() || is_name(part))
    }

    fn name_bytes(&self) -> usize {
        self.group.len() + self.version.len() + self.kind.len()
    }
}

impl RemoteResource {
    fn name_bytes(&self) -> usize {
        let kind = |kind: &Option<RemoteKind>| kind.as_ref().map_or(0, RemoteKind::name_bytes);
        let all = |names: &[String]| -> usize { names.iter().map(String::len).sum() };
        let subresources = self.subresources.iter();
        let subresources: usize = subresources
            .map(|sub| sub.subresource.len() + kind(&sub.response_kind) + all(&sub.verbs))
            .sum();
        let lists = all(&self.verbs) + all(&self.short_names) + all(&self.categories);
        let own = self.resource.len() + self.singular_resource.len() + kind(&self.response_kind);
        own + lists + subresources
    }

    /// The memory of all names, in bytes.
    pub(crate) fn memory(&self) -> usize {
        // What a name takes beside its text, with what the allocator needs for it.
        const NAME: usize = size_of::<String>() + 16;
        // The scope and the names of a resource and of its kind; the name of a subresource and of its kind.
        const OF_RESOURCE: usize = 6;
        const OF_SUBRESOURCE: usize = 4;
        let subresources = self.subresources.iter();
        let subresources: usize = subresources
            .map(|sub| OF_SUBRESOURCE + sub.verbs.len())
            .sum();
        let lists = self.verbs.len() + self.short_names.len() + self.categories.len();
        self.name_bytes() + (OF_RESOURCE + lists + subresources) * NAME
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList {
    #[serde(default)]
    group_version: String,
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
/// If it is no such list, or that of another version.
pub fn of_resource_list(
    list: &[u8],
    group: &str,
    version: &str,
) -> Result<Vec<RemoteResource>, serde_json::Error> {
    let list: ResourceList = serde_json::from_slice(list)?;
    let expected = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    if !list.group_version.is_empty() && list.group_version != expected {
        let found = echoed(&list.group_version);
        let problem = format!("the list is of the version {found:?} and not of {expected:?}");
        return Err(serde_json::Error::custom(problem));
    }
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
    let listed = resources.iter().enumerate();
    let mut positions: HashMap<String, usize> = listed
        .rev()
        .map(|(position, of)| (of.resource.clone(), position))
        .collect();
    for of in below {
        let Some((resource, subresource)) = of.name.split_once('/') else {
            continue;
        };
        let known = positions.get(resource).copied();
        let position = known.unwrap_or_else(|| {
            resources.push(parent(resource, of.namespaced));
            positions.insert(resource.to_owned(), resources.len() - 1);
            resources.len() - 1
        });
        resources[position].subresources.push(RemoteSubresource {
            subresource: subresource.to_owned(),
            response_kind: Some(kind(&of)),
            verbs: of.verbs,
        });
    }
    Ok(sound(resources))
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
    use serde_json::json;

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
    fn what_cannot_be_a_name_or_is_there_twice_is_left_out() {
        let resource = |name: &str| {
            json!({"resource": name, "scope": "Cluster", "verbs": ["get", "get", "a\nb"], "shortNames": ["x/y", "x"],
                "subresources": [{"subresource": "status"}, {"subresource": "../x"}, {"subresource": "status"}]})
        };
        let names = [
            "good",
            "a/b",
            "..",
            "a\r\nb",
            "ä",
            "",
            "good",
            "http_requests:Rate5m",
        ];
        let document = json!({"items": [{"metadata": {"name": "g.io"}, "versions": [
            {"version": "v1", "resources": names.map(resource)},
        ]}]});
        let found = of_discovery(document.to_string().as_bytes(), "g.io", "v1").unwrap();
        let found = found.unwrap();
        let kept: Vec<&str> = found.iter().map(|of| &*of.resource).collect();
        assert_eq!(kept, ["good", "http_requests:Rate5m"]);
        assert_eq!(
            (&*found[0].verbs, &*found[0].short_names),
            (&["get".to_owned()][..], &["x".to_owned()][..])
        );
        assert_eq!(found[0].subresources.len(), 1);
        let other = br#"{"groupVersion":"h.io/v1","resources":[]}"#;
        assert!(of_resource_list(other, "g.io", "v1").is_err());
    }

    #[test]
    fn the_names_of_a_version_are_bounded_together() {
        let resources: Vec<_> = (0..10_000)
            .map(|number| json!({"name": format!("{}{number}", "a".repeat(200)), "namespaced": true}))
            .collect();
        let list = json!({"resources": resources}).to_string();
        let found = of_resource_list(list.as_bytes(), "g.io", "v1").unwrap();
        let bytes: usize = found.iter().map(RemoteResource::name_bytes).sum();
        assert!(bytes <= MAX_NAME_BYTES && found.len() > 1000, "{bytes}");
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
