//! The sources of what is served, in the order in which requests ask them: versions of other servers, the next server of a chain, paths of a
//! program, resources, documents.

pub mod aggregation;
pub(super) mod definitions;
pub(super) mod delegation;
pub(super) mod documents;
pub(super) mod paths;
pub(super) mod refusals;
pub(super) mod resources;
pub(crate) mod route_list;
pub(super) mod snapshot;
pub(super) mod source;
