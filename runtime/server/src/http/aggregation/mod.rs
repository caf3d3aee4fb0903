//! Versions of groups that other servers serve, behind an APIService: which these are, and how requests and documents reach
//! them. A controller publishes what is known as a whole, a [`Table`]; requests only read it.

mod address;
mod merge;
mod openapi;
mod proxy;
mod remote;
mod state;
mod table;
mod tunnel;

pub(crate) use merge::{local_priority, merge};
pub(crate) use openapi::{add_v3, merge_v2, part_of_v2, part_of_v3, prefix, v3_documents};
pub(crate) use remote::{
    Addresses, Connections, ProxyIdentity, RemoteServer, RemoteTarget, Unreachable, add_aggregator,
};
pub(crate) use state::{Aggregation, UnreachableNotices};
pub(crate) use table::{
    DocumentRoom, GROUP, LocalService, Priority, RemoteDocuments, RemoteV3, Service, Table,
    version_of,
};
pub(super) use tunnel::{Forwarded, is_requested as asks_for_upgrade};

pub(crate) use super::served::{RemoteResource, of_discovery, of_resource_list};
