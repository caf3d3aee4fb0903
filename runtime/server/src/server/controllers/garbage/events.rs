//! Events about objects whose references are wrong, for people.

use std::sync::Arc;

use apiloom_client::controller::{
    ClientEvents, EventType, LeaderElector, NewEvent, ObjectReference, Recorder,
};
use apiloom_meta::OwnerReference;

use crate::registry::Registry;
use crate::server::controllers::requests::Requests;

/// The name of the collector in its events, as in Kubernetes.
const CONTROLLER: &str = "garbage-collector-controller";

/// Records events where Events are served. Those that repeat are counted in one, and those of an object are limited.
pub(super) struct Events {
    registry: Arc<Registry>,
    recorder: Recorder,
}

impl Events {
    pub(super) fn new(requests: &Requests) -> Self {
        let sink = ClientEvents::new(requests.client());
        Self {
            registry: Arc::clone(requests.registry()),
            recorder: Recorder::new(sink, CONTROLLER, LeaderElector::unique_identity("apiloom")),
        }
    }

    /// An owner reference of an object names an owner in another namespace. Reason and note are those of Kubernetes.
    pub(super) fn owner_in_other_namespace(&self, of: ObjectReference, owner: &OwnerReference) {
        let resource = ("events.k8s.io", "v1", "events");
        if self
            .registry
            .endpoint(resource.0, resource.1, resource.2)
            .is_none()
        {
            return;
        }
        let OwnerReference {
            api_version,
            kind,
            name,
            uid,
            ..
        } = owner;
        let namespace = &of.namespace;
        let note = format!(
            "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace {namespace:?}"
        );
        self.recorder.record(NewEvent {
            event_type: EventType::Warning,
            regarding: of,
            related: None,
            reason: "OwnerRefInvalidNamespace".to_owned(),
            action: String::new(),
            note,
        });
    }
}
