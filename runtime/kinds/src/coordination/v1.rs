//! Version v1 of the group coordination.k8s.io.

use apiloom_macros::{api, resource};
use apiloom_meta::{MicroTime, ObjectMeta};

/// Lease is a lock that its holder renews, for elections and signs of life.
#[resource(group = "coordination.k8s.io", version = "v1", namespaced, crate = apiloom_meta, proto(package = "k8s.io.api.coordination.v1"), store_path = "leases",
    generation = none, unconditional_update = false, create_on_update = true, strategic_merge_patch,
    printcolumn(name = "Holder", path = spec.holder_identity, doc = "Who holds the lease."))]
#[derive(Default)]
pub struct Lease {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// Who holds the lease, and for how long.
    #[api(proto = 2, default = LeaseSpec::default())]
    pub spec: LeaseSpec,
}

/// LeaseSpec says who holds a lease, and for how long.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct LeaseSpec {
    /// The holder; unset or empty for none.
    #[api(proto = 1)]
    pub holder_identity: Option<String>,
    /// For how many seconds after renewTime others wait before they take the lease.
    #[api(proto = 2)]
    pub lease_duration_seconds: Option<i32>,
    /// When the holder acquired the lease.
    #[api(proto = 3)]
    pub acquire_time: Option<MicroTime>,
    /// When the holder renewed it last.
    #[api(proto = 4)]
    pub renew_time: Option<MicroTime>,
    /// How often the lease went from one holder to another.
    #[api(proto = 5)]
    pub lease_transitions: Option<i32>,
    /// How the holder is chosen, for coordinated leader election: OldestEmulationVersion, or a qualified name.
    #[api(proto = 6)]
    pub strategy: Option<String>,
    /// The one who should hold the lease next, for coordinated leader election.
    #[api(proto = 7)]
    pub preferred_holder: Option<String>,
}
