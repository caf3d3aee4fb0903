//! The resources of a server, and finding one of them.

use apiloom_meta::gvk::GroupVersion;

use crate::client::ApiResource;

/// The resources of a server, at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// The resources, in the order of the server: preferred groups and versions first.
    pub resources: Vec<DiscoveredResource>,
    /// Groups and versions whose resources could not be read, or may be old: those of other servers behind this one.
    pub incomplete: Vec<GroupVersion>,
}

/// A resource of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveredResource {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// The singular name; mostly the kind in lower case.
    pub singular: String,
    /// Short names for people.
    pub short_names: Vec<String>,
    /// Categories such as `all`.
    pub categories: Vec<String>,
    /// Whether the objects are in namespaces.
    pub is_namespaced: bool,
    /// The verbs of its objects.
    pub verbs: Vec<String>,
    /// The names of the subresources.
    pub subresources: Vec<String>,
}

impl DiscoveredResource {
    /// Whether the resource has this verb: `list`, `watch`.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }
}

impl Discovery {
    /// The preferred version of a kind, or the one that is asked for.
    pub fn kind(
        &self,
        group: &str,
        version: Option<&str>,
        kind: &str,
    ) -> Option<&DiscoveredResource> {
        self.resources.iter().find(|found| {
            let resource = &found.resource;
            resource.group == group
                && resource.kind == kind
                && version.is_none_or(|version| resource.version == version)
        })
    }

    /// The resource with a name that a person gives: plural, singular or short, alone or with its group, or with its version
    /// and group: `fl`, `flunders.wardle.example.com`, `flunders.v1alpha1.wardle.example.com`. Plural names win over singular,
    /// and these over short ones; then the order of the server decides.
    pub fn resource(&self, name: &str) -> Option<&DiscoveredResource> {
        let name = name.to_lowercase();
        let mut parts = name.splitn(3, '.');
        let first = parts.next().unwrap_or_default();
        let (version, last) = (parts.next(), parts.next());
        let is_versioned = |found: &&DiscoveredResource| {
            version == Some(&*found.resource.version) && last == Some(&*found.resource.group)
        };
        let group = name.split_once('.').map(|(_, group)| group);
        let in_group =
            |found: &&DiscoveredResource| group.is_none_or(|group| found.resource.group == group);
        self.named(first, is_versioned)
            .or_else(|| self.named(first, in_group))
    }

    fn named(
        &self,
        name: &str,
        is_right: impl Fn(&&DiscoveredResource) -> bool,
    ) -> Option<&DiscoveredResource> {
        if name.is_empty() {
            return None;
        }
        let right = || self.resources.iter().filter(&is_right);
        right()
            .find(|found| found.resource.plural == name)
            .or_else(|| right().find(|found| found.singular == name))
            .or_else(|| right().find(|found| found.short_names.iter().any(|short| short == name)))
    }

    /// The resources of a category, each in its preferred version.
    pub fn category(&self, category: &str) -> Vec<&DiscoveredResource> {
        let mut found: Vec<&DiscoveredResource> = Vec::new();
        for resource in &self.resources {
            let is_in = resource.categories.iter().any(|known| known == category);
            let key = resource.resource.group_resource();
            if is_in
                && found
                    .iter()
                    .all(|other| other.resource.group_resource() != key)
            {
                found.push(resource);
            }
        }
        found
    }
}
