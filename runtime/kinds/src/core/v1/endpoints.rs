//! Endpoints.

use apiloom_macros::{api, resource};
use apiloom_meta::ObjectMeta;

use super::ObjectReference;

/// Endpoints lists the addresses at which a service is reached.
#[resource(group = "", version = "v1", namespaced, crate = apiloom_meta, proto(package = "k8s.io.api.core.v1"), shortname = "ep",
    plural = "endpoints", singular = "endpoints", generation = none, strategic_merge_patch)]
#[derive(Default)]
pub struct Endpoints {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The addresses, in sets that have the same ports.
    #[api(proto = 2, list = atomic)]
    pub subsets: Vec<EndpointSubset>,
}

/// EndpointSubset is a set of addresses with the same ports.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct EndpointSubset {
    /// The addresses of those that are ready.
    #[api(proto = 1, list = atomic)]
    pub addresses: Vec<EndpointAddress>,
    /// The addresses of those that are not ready.
    #[api(proto = 2, list = atomic)]
    pub not_ready_addresses: Vec<EndpointAddress>,
    /// The ports of all of them.
    #[api(proto = 3, list = atomic)]
    pub ports: Vec<EndpointPort>,
}

/// EndpointAddress is an address of one that serves.
#[api(crate = apiloom_meta, atomic)]
#[derive(Default)]
pub struct EndpointAddress {
    /// The IP address.
    #[api(proto = 1)]
    pub ip: String,
    /// What serves at the address.
    #[api(proto = 2)]
    pub target_ref: Option<ObjectReference>,
    /// The name of the host.
    #[api(proto(number = 3, omit_empty))]
    pub hostname: Option<String>,
    /// The node on which it serves.
    #[api(proto = 4)]
    pub node_name: Option<String>,
}

/// EndpointPort is a port of all addresses of a set.
#[api(crate = apiloom_meta, atomic)]
#[derive(Default)]
pub struct EndpointPort {
    /// The name, which is that of the service's port.
    #[api(proto(number = 1, omit_empty))]
    pub name: Option<String>,
    /// The number.
    #[api(proto = 2)]
    pub port: i32,
    /// The protocol: TCP, UDP or SCTP.
    #[api(proto(number = 3, omit_empty))]
    pub protocol: Option<String>,
    /// The protocol of the application, such as `kubernetes.io/h2c`.
    #[api(proto = 4)]
    pub app_protocol: Option<String>,
}
