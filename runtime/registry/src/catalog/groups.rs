//! Groups of a catalog with their versions, and checks for names that kinds of a group share.

use std::collections::HashSet;
use std::sync::Arc;

use apiloom_meta::kind::{GroupDef, Place, Release, ResourceDef, SmolStr, compare_versions};

use crate::problems::{label, two_kinds_problem, with_places};

/// The version that the core group has always: that of namespaces.
const CORE_VERSION: &str = "v1";

/// A group with its versions in order of preference.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) name: SmolStr,
    pub(super) versions: Vec<SmolStr>,
    /// The release with which lifecycles are compared: an emulated one, or that of the build.
    pub(super) release: Option<Release>,
    /// The release of the build.
    pub(super) build_release: Option<Release>,
    place: Option<Place>,
}

impl Group {
    /// Whether the group behaves as in an earlier release than that of the build.
    pub(super) fn is_emulated(&self) -> bool {
        self.release != self.build_release
    }

    /// Whether the release of the group has a version of a kind: it is introduced, and not yet removed.
    pub(super) fn has(&self, def: &ResourceDef) -> bool {
        let (Some(lifecycle), Some(release)) = (&def.lifecycle, self.release) else {
            return true;
        };
        lifecycle.introduced.is_none_or(|first| first <= release)
            && lifecycle.removed.is_none_or(|end| release < end)
    }

    /// Position of a version in the order of preference.
    pub(super) fn preference(&self, version: &str) -> usize {
        let position = self.versions.iter().position(|name| name == version);
        position.unwrap_or(usize::MAX)
    }
}

/// A group's name in error texts.
pub(super) fn group_label(name: &str) -> String {
    if name.is_empty() {
        "the core group".to_owned()
    } else {
        format!("group {name}")
    }
}

/// The declared groups, then those without a declaration in order of registration; core first. Kinds from documents may add
/// versions to declared groups.
pub(super) fn complete_groups(
    declared: &[GroupDef],
    defs: &[Arc<ResourceDef>],
    problems: &mut Vec<String>,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for group in declared {
        if let Some(known) = groups.iter().find(|known| known.name == group.name) {
            let problem = format!("{} is declared twice", group_label(&group.name));
            problems.push(with_places([known.place, group.place], problem));
            continue;
        }
        groups.push(Group {
            name: group.name.clone(),
            versions: group.versions.to_vec(),
            release: group.release,
            build_release: group.release,
            place: group.place,
        });
    }
    complete_core(&mut groups);
    for def in defs {
        let is_declared = declared.iter().any(|group| group.name == def.group);
        match groups.iter_mut().find(|group| group.name == def.group) {
            None => groups.push(Group {
                name: def.group.clone(),
                versions: vec![def.version.clone()],
                release: None,
                build_release: None,
                place: None,
            }),
            Some(group) if group.versions.contains(&def.version) => {}
            Some(group) if !is_declared || !def.dialect.is_of_program() => {
                group.versions.push(def.version.clone());
            }
            Some(group) => {
                let versions = group.versions.join(", ");
                let problem = format!(
                    "{}: {} declares the versions {versions}",
                    label(def),
                    group_label(&group.name)
                );
                problems.push(with_places([def.place, group.place], problem));
            }
        }
    }
    sort_versions(declared, defs, &mut groups);
    groups
}

/// Sorts the versions of groups whose kinds all say so: Kubernetes prefers those of definitions by their names.
fn sort_versions(declared: &[GroupDef], defs: &[Arc<ResourceDef>], groups: &mut [Group]) {
    let mut unsorted: HashSet<&str> = declared.iter().map(|group| &*group.name).collect();
    let others = defs.iter().filter(|def| !def.dialect.sorts_versions);
    unsorted.extend(others.map(|def| &*def.group));
    let groups = groups.iter_mut();
    for group in groups.filter(|group| !unsorted.contains(&*group.name)) {
        group
            .versions
            .sort_by(|one, other| compare_versions(one, other));
    }
}

/// Puts the core group first, declared or not, with the version of namespaces.
fn complete_core(groups: &mut Vec<Group>) {
    let position = groups.iter().position(|group| group.name.is_empty());
    let mut core = match position {
        Some(position) => groups.remove(position),
        None => Group {
            name: SmolStr::default(),
            versions: Vec::new(),
            release: None,
            build_release: None,
            place: None,
        },
    };
    let version = SmolStr::new_static(CORE_VERSION);
    if !core.versions.contains(&version) {
        core.versions.push(version);
    }
    groups.insert(0, core);
}

/// The problems of names that two kinds of a group share, and of names that differ between the versions of a kind.
pub(super) fn ambiguous_names(defs: &[Arc<ResourceDef>]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut told = Vec::new();
    for (index, def) in defs.iter().enumerate() {
        let names = def.names();
        let earlier = defs[..index]
            .iter()
            .filter(|other| other.group == def.group);
        let (versions, others): (Vec<_>, Vec<_>) =
            earlier.partition(|other| other.plural == def.plural);
        // Versions with different kinds are reported by `check_versions`.
        if let Some(first) = versions.first().filter(|first| first.kind == def.kind) {
            let differences = first.names().differences(&names);
            lines.extend(differences.iter().map(|difference| {
                let what = format!(
                    "differ in their {}: {} and {}",
                    difference.what, difference.first, difference.second
                );
                two_kinds_problem(first, def, what)
            }));
        }
        for other in others {
            for name in names.shared(&other.names()) {
                let resources = (name, other.plural.clone(), def.plural.clone());
                // Reported once for several versions.
                if !told.contains(&resources) {
                    told.push(resources);
                    lines.push(two_kinds_problem(
                        other,
                        def,
                        format!("share the name {name}"),
                    ));
                }
            }
        }
    }
    lines
}
