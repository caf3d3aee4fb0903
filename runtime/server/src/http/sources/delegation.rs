//! A chain of servers behind one chain of filters: what the first does not serve is answered by the next. A version of a group
//! belongs to the first server that has it; so do its documents.
//!
//! # Inside
//!
//! - `http/sources/delegation.rs` decides by the version of the path, once, after the look for an APIService: a version of a group belongs to the first
//!   server that has it, with its documents. The order of all is thus: APIService, this server, the next ones, 404. `Api::current` has a snapshot of the whole
//!   chain, so a request sees one catalog of each server. Discovery, OpenAPI, the list at `/` and the APIServices of the first are those of all.
//! - The next server is started and stopped by the first (`server/running.rs`): it stops when the first has answered its requests, closes its
//!   own store, and runs its own controllers by its own loopback. Its health checks join those of the first; two of the same name are one.
//! - Handlers of a program (`http/sources/paths.rs`): one of an exact path comes before the documents of the server, one of a prefix after them
//!   and before the 404. Hooks (`server/hooks.rs`) run once the server serves.

use crate::http::documents::served::{Group, served};
use crate::registry::Catalog;

/// Whether a catalog has the version.
pub(in crate::http) fn serves(catalog: &Catalog, group: &str, version: &str) -> bool {
    let mut groups = catalog.groups().iter();
    let found = groups.find(|of| of.name == group);
    found.is_some_and(|of| of.versions.iter().any(|served| served == version))
}

/// The groups of several catalogs, each version as the first has it.
pub(in crate::http) fn served_by<'a>(
    catalogs: impl Iterator<Item = &'a Catalog>,
) -> Vec<Group<'a>> {
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
