//! The groups of discovery: those of this server and those of others, in the order of their priorities.

use apiloom_meta::kind::compare_versions;

use super::table::{GROUP, LocalService, Priority, Table};
use crate::documents::served::{Group, RemoteVersion, Version};

/// The groups of Kubernetes that a server can have, with their priorities in kube-apiserver.
const KNOWN_GROUPS: [(&str, Priority); 10] = [
    (GROUP, known(20_000, 1)),
    ("", known(18_000, 1)),
    ("events.k8s.io", known(17_750, 15)),
    ("authentication.k8s.io", known(17_700, 15)),
    ("authorization.k8s.io", known(17_600, 15)),
    ("autoscaling", known(17_500, 15)),
    ("rbac.authorization.k8s.io", known(17_000, 15)),
    ("admissionregistration.k8s.io", known(16_700, 15)),
    ("apiextensions.k8s.io", known(16_700, 15)),
    ("coordination.k8s.io", known(16_500, 15)),
];

const fn known(group: i32, version: i32) -> Priority {
    Priority { group, version }
}

/// The priority of all other groups.
const OTHER_GROUP: i32 = 1_000;

/// The priority of versions that are sorted: their names decide.
const SORTED_VERSION: i32 = 100;

/// Between the priorities of two versions of a group, as in the manifests that `apiloom generate` writes.
const STEP: i32 = 10;

/// The priorities of the APIService that the server makes of a version which it serves: the `index`th of `count`, preferred
/// first.
pub fn local_priority(group: &str, (index, count): (usize, usize), is_sorted: bool) -> Priority {
    if let Some((_, known)) = KNOWN_GROUPS.iter().find(|(name, _)| *name == group) {
        return *known;
    }
    let rank = i32::try_from(count.saturating_sub(index)).unwrap_or(i32::MAX);
    Priority {
        group: OTHER_GROUP,
        version: if is_sorted {
            SORTED_VERSION
        } else {
            rank.saturating_mul(STEP).min(1_000)
        },
    }
}

/// Whether the name of a version decides its place, as all its kinds say.
fn is_sorted(version: &Version<'_>) -> bool {
    let mut kinds = version.kinds.iter();
    kinds.all(|kind| kind.def.dialect.sorts_versions)
}

/// A version with its place in the order.
struct PlacedVersion<'a> {
    group: &'a str,
    priority: Priority,
    version: Version<'a>,
}

/// The groups of this server with those of others. A version that another server serves replaces that of this one. The order
/// is that of the stored APIServices; a version that has none yet is placed where that will be.
pub(crate) fn merge<'a>(local: Vec<Group<'a>>, table: &'a Table) -> Vec<Group<'a>> {
    let mut placed: Vec<PlacedVersion<'a>> = Vec::new();
    let is_remote = |group: &str, version: &str| {
        let mut remote = table.services().iter();
        remote.any(|of| of.group == group && of.version == version)
    };
    for group in local {
        let count = group.versions.len();
        for (index, version) in group.versions.into_iter().enumerate() {
            if is_remote(group.name, version.name) {
                continue;
            }
            let is_sorted = is_sorted(&version);
            let mut stored = table.local().iter();
            let stored = stored.find(|of| of.group == group.name && of.version == version.name);
            placed.push(PlacedVersion {
                group: group.name,
                priority: stored.map_or_else(
                    || local_priority(group.name, (index, count), is_sorted),
                    |stored| stored.priority,
                ),
                version,
            });
        }
    }
    // Those of users: the version is listed, as in kube-aggregator, and its paths are not found. Those of a server stay some
    // seconds after their version, which clients of discovery would look for in vain.
    let is_placed = |of: &&LocalService| {
        let mut placed = placed.iter();
        placed.any(|one| one.group == of.group && one.version.name == of.version)
    };
    let of_users = table.local().iter().filter(|of| !of.is_automanaged);
    let unserved = of_users.filter(|of| !is_placed(of));
    let unserved: Vec<PlacedVersion<'a>> = unserved
        .map(|of| {
            let nothing = RemoteVersion {
                resources: None,
                is_fresh: true,
            };
            placed_remote((&of.group, &of.version, of.priority), nothing)
        })
        .collect();
    placed.extend(unserved);
    placed.extend(table.services().iter().map(|service| {
        let of = (
            service.group.as_str(),
            service.version.as_str(),
            service.priority,
        );
        let known = RemoteVersion {
            resources: service.documents.resources.as_deref().map(Vec::as_slice),
            is_fresh: service.is_available
                && !service.documents.is_stale
                && service.documents.resources.is_some(),
        };
        placed_remote(of, known)
    }));
    ordered(placed)
}

/// A version without kinds of this server.
fn placed_remote<'a>(
    (group, version, priority): (&'a str, &'a str, Priority),
    known: RemoteVersion<'a>,
) -> PlacedVersion<'a> {
    PlacedVersion {
        group,
        priority,
        version: Version {
            name: version,
            kinds: Vec::new(),
            remote: Some(known),
        },
    }
}

/// Groups by priority and name, their versions by priority and name.
fn ordered(mut placed: Vec<PlacedVersion<'_>>) -> Vec<Group<'_>> {
    let mut groups: Vec<(i32, Group<'_>)> = Vec::new();
    placed.sort_by(|one, other| {
        let names = || compare_versions(one.version.name, other.version.name);
        other
            .priority
            .version
            .cmp(&one.priority.version)
            .then_with(names)
    });
    for PlacedVersion {
        group,
        priority: of_version,
        version,
    } in placed
    {
        match groups.iter_mut().find(|(_, known)| known.name == group) {
            Some((priority, known)) => {
                *priority = of_version.group.max(*priority);
                known.versions.push(version);
            }
            None => groups.push((
                of_version.group,
                Group {
                    name: group,
                    versions: vec![version],
                },
            )),
        }
    }
    groups.sort_by(|(one, first), (other, second)| {
        other.cmp(one).then_with(|| first.name.cmp(second.name))
    });
    groups.into_iter().map(|(_, group)| group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_left_are_listed_only_for_api_services_of_users() {
        let service = |group: &str, is_automanaged| LocalService {
            group: group.to_owned(),
            version: "v1".to_owned(),
            priority: known(1_000, 100),
            is_automanaged,
        };
        let services = vec![
            service("left.example.com", true),
            service("user.example.com", false),
        ];
        let table = Table::new(Vec::new(), services);
        let groups: Vec<&str> = merge(Vec::new(), &table).iter().map(|of| of.name).collect();
        assert_eq!(groups, ["user.example.com"]);
    }
}
