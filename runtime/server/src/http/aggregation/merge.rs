//! The groups of discovery: those of this server and those of others, in the order of their priorities.

use apiloom_meta::kind::compare_versions;

use super::table::{GROUP, Table};
use crate::http::served::{Group, RemoteVersion, Version};

/// The priorities of the APIService that the server makes of a version which it serves itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalPriority {
    pub(crate) group: i32,
    pub(crate) version: i32,
}

/// The groups of Kubernetes that a server can have, with their priorities in kube-apiserver.
const KNOWN_GROUPS: [(&str, LocalPriority); 6] = [
    (GROUP, known(20_000, 1)),
    ("", known(18_000, 1)),
    ("events.k8s.io", known(17_750, 15)),
    ("autoscaling", known(17_500, 15)),
    ("apiextensions.k8s.io", known(16_700, 15)),
    ("coordination.k8s.io", known(16_500, 15)),
];

const fn known(group: i32, version: i32) -> LocalPriority {
    LocalPriority { group, version }
}

/// The priority of all other groups.
const OTHER_GROUP: i32 = 1_000;

/// The priority of the versions of custom resources: their names decide.
const CUSTOM_VERSION: i32 = 100;

/// Between the priorities of two versions of a group, as in the manifests that `apiloom generate` writes.
const STEP: i32 = 10;

/// The priorities of a version that this server serves: the `index`th of `count`, preferred first.
pub(crate) fn local_priority(
    group: &str,
    (index, count): (usize, usize),
    is_custom: bool,
) -> LocalPriority {
    if let Some((_, known)) = KNOWN_GROUPS.iter().find(|(name, _)| *name == group) {
        return *known;
    }
    let rank = i32::try_from(count.saturating_sub(index)).unwrap_or(i32::MAX);
    LocalPriority {
        group: OTHER_GROUP,
        version: if is_custom {
            CUSTOM_VERSION
        } else {
            rank.saturating_mul(STEP).min(1_000)
        },
    }
}

/// Whether all kinds of a version are custom resources.
fn is_custom(version: &Version<'_>) -> bool {
    version.kinds.iter().all(|kind| kind.def.custom.is_some())
}

/// A version with its place in the order.
struct Placed<'a> {
    group: &'a str,
    group_priority: i32,
    version_priority: i32,
    version: Version<'a>,
}

/// The groups of this server with those of others. A version that another server serves replaces that of this one.
pub(crate) fn merge<'a>(local: Vec<Group<'a>>, table: &'a Table) -> Vec<Group<'a>> {
    let mut placed: Vec<Placed<'a>> = Vec::new();
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
            let is_custom = is_custom(&version);
            let priority = local_priority(group.name, (index, count), is_custom);
            placed.push(Placed {
                group: group.name,
                group_priority: priority.group,
                version_priority: priority.version,
                version,
            });
        }
    }
    placed.extend(table.services().iter().map(|service| Placed {
        group: &service.group,
        group_priority: service.group_priority,
        version_priority: service.version_priority,
        version: Version {
            name: &service.version,
            kinds: Vec::new(),
            remote: Some(RemoteVersion {
                resources: service.documents.resources.as_deref().map(Vec::as_slice),
                is_fresh: service.is_available
                    && !service.documents.is_stale
                    && service.documents.resources.is_some(),
            }),
        },
    }));
    ordered(placed)
}

/// Groups by priority and name, their versions by priority and name.
fn ordered(mut placed: Vec<Placed<'_>>) -> Vec<Group<'_>> {
    let mut groups: Vec<(i32, Group<'_>)> = Vec::new();
    placed.sort_by(|one, other| {
        let names = || compare_versions(one.version.name, other.version.name);
        other
            .version_priority
            .cmp(&one.version_priority)
            .then_with(names)
    });
    for Placed {
        group,
        group_priority,
        version,
        ..
    } in placed
    {
        match groups.iter_mut().find(|(_, known)| known.name == group) {
            Some((priority, known)) => {
                *priority = group_priority.max(*priority);
                known.versions.push(version);
            }
            None => groups.push((
                group_priority,
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
