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

/// Pod is a program that runs on a node.
#[apiloom::resource(group = "", version = "v1", namespaced, status, strategic_merge_patch, shortname = "po",
    graceful_delete = 30, deletion(returns = object),
    printcolumn(name = "Node", path = spec.node_name), printcolumn(name = "Phase", path = status.phase))]
pub struct Pod {
    pub metadata: ObjectMeta,
    /// What is wanted of the program.
    pub spec: PodSpec,
    /// What its node reports.
    pub status: Option<PodStatus>,
}

/// PodSpec says where a program runs, and how it ends.
#[apiloom::api]
pub struct PodSpec {
    /// The node that runs it.
    pub node_name: Option<String>,
    /// How long the program may take to end, in seconds.
    #[api(min = 0)]
    pub termination_grace_period_seconds: Option<i64>,
}

/// PodStatus is the state of a program.
#[apiloom::api]
pub struct PodStatus {
    /// Where the program is in its life.
    pub phase: Option<String>,
}

/// A pod ends in the time that it asks for. One that no node runs is removed at once.
pub struct PodRules;

impl Strategy<Pod> for PodRules {
    const HAS_DEFAULTS: bool = false;

    fn grace_seconds(
        &self,
        _ctx: &RequestContext,
        pod: &Pod,
        requested: Option<i64>,
    ) -> Option<i64> {
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
        if has_ended || pod.spec.node_name.is_none() {
            return Some(0);
        }
        requested.or(pod.spec.termination_grace_period_seconds)
    }
}

/// ReplicationController keeps a number of pods running.
#[apiloom::resource(group = "", version = "v1", namespaced, strategic_merge_patch, shortname = "rc",
    deletion(dependents = orphan), printcolumn(name = "Desired", path = spec.replicas))]
pub struct ReplicationController {
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: ReplicationControllerSpec,
}

/// ReplicationControllerSpec says how many pods are wanted.
#[apiloom::api]
pub struct ReplicationControllerSpec {
    /// The number of pods.
    #[api(default = 1, min = 0)]
    pub replicas: i32,
}
