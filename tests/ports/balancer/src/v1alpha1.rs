//! The oldest version: minutes, backends without weights, no listeners, and no rules at all.

use apiloom::prelude::*;

use crate::v1;

/// Balancer spreads connections over backends.
#[apiloom::resource(group = "lb.example.com", version = "v1alpha1", namespaced, spoke_of = v1::Balancer, status, shortname = "bal")]
pub struct Balancer {
    pub metadata: ObjectMeta,
    pub spec: BalancerSpec,
    pub status: Option<BalancerStatus>,
}

/// BalancerSpec says what is listened to and where connections go.
#[apiloom::api(convert(peer = v1::BalancerSpec,
    hub_only(policy = v1::Policy::RoundRobin, drain = false, session = None, health = None),
    lossy(listeners, steps, aliases)))]
pub struct BalancerSpec {
    /// The class of balancers that it belongs to.
    pub class: String,
    /// How many connections it takes beside others.
    #[api(default = 1)]
    pub weight: i32,
    /// How long a connection may be idle.
    #[api(default = 1, convert(rename = timeout_seconds, with = (to_seconds, to_minutes)))]
    pub timeout_minutes: i32,
    /// Where connections go: the address by the name.
    #[api(convert(with = (to_backends, addresses)))]
    pub backends: Option<BTreeMap<String, String>>,
}

fn to_seconds(minutes: i32) -> i64 {
    i64::from(minutes) * 60
}

fn to_minutes(seconds: i64) -> i32 {
    i32::try_from(seconds / 60).unwrap_or(i32::MAX)
}

fn to_backends(
    addresses: Option<BTreeMap<String, String>>,
) -> Option<BTreeMap<String, v1::Backend>> {
    let backend = |(name, address)| (name, v1::Backend { address, weight: 1 });
    addresses.map(|addresses| addresses.into_iter().map(backend).collect())
}

fn addresses(backends: Option<BTreeMap<String, v1::Backend>>) -> Option<BTreeMap<String, String>> {
    let address = |(name, backend): (String, v1::Backend)| (name, backend.address);
    backends.map(|backends| backends.into_iter().map(address).collect())
}

/// BalancerStatus is what the balancer reports.
#[apiloom::api(convert(peer = v1::BalancerStatus, lossy(refused)))]
pub struct BalancerStatus {
    /// How many backends are well.
    pub ready: i32,
}
