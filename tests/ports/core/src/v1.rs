//! core/v1.

use std::collections::BTreeMap;

use apiloom::prelude::*;

/// ConfigMap holds configuration data for programs to read.
#[apiloom::resource(group = "", version = "v1", namespaced, storage, strategic_merge_patch, shortname = "cm",
    printcolumn(name = "Immutable", path = immutable))]
pub struct ConfigMap {
    pub metadata: ObjectMeta,
    /// The configuration, each value by its key.
    #[api(props(max = 100))]
    pub data: Option<BTreeMap<String, String>>,
    /// Whether the data is not to be changed any more.
    #[api(default = false)]
    pub immutable: bool,
}

/// Node is a machine that programs run on.
#[apiloom::resource(group = "", version = "v1", cluster, status, strategic_merge_patch, shortname = "no",
    printcolumn(name = "Phase", path = status.phase))]
pub struct Node {
    pub metadata: ObjectMeta,
    /// What is wanted of the machine.
    pub spec: NodeSpec,
    /// What the machine reports.
    pub status: Option<NodeStatus>,
}

/// NodeSpec says how a machine is used.
#[apiloom::api]
pub struct NodeSpec {
    /// Whether no new programs may be started on it.
    #[api(default = false)]
    pub unschedulable: bool,
    /// What keeps programs away from it.
    #[api(list = map(key, effect), patch(merge, key = key))]
    pub taints: Vec<Taint>,
}

/// Taint keeps programs away from a machine.
#[apiloom::api]
pub struct Taint {
    /// What it is about.
    pub key: String,
    /// What it does.
    pub effect: String,
    /// More about it.
    pub value: Option<String>,
}

/// NodeStatus is the state of a machine.
#[apiloom::api]
pub struct NodeStatus {
    /// Where the machine is in its life.
    pub phase: Option<String>,
}
