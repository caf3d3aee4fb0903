//! A chain of servers behind one chain of filters: what the first does not serve is answered by the next. A version of a group
//! belongs to the first server that has it; so do its documents.

use super::served::{Group, served};
use crate::registry::Catalog;

/// Whether a catalog has the version.
pub(super) fn serves(catalog: &Catalog, group: &str, version: &str) -> bool {
    let mut groups = catalog.groups().iter();
    let found = groups.find(|of| of.name == group);
    found.is_some_and(|of| of.versions.iter().any(|served| served == version))
}

/// The groups of several catalogs, each version as the first has it.
pub(super) fn served_by<'a>(catalogs: impl Iterator<Item = &'a Catalog>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for group in catalogs.flat_map(served) {
        let Some(known) = groups.iter_mut().find(|known| known.name == group.name) else {
            groups.push(group);
            continue;
        };
        for version in group.versions {
            if known.versions.iter().all(|of| of.name != version.name) {
                known.versions.push(version);
            }
        }
    }
    groups
}
