//! Events about objects whose references are wrong, and about kinds that cannot be read, for people.

use std::sync::Arc;

use apiloom_client::controller::{
    ClientEvents, EventType, LeaderElector, NewEvent, ObjectReference, Recorder,
};
use apiloom_meta::OwnerReference;
use apiloom_registry::Registry;
use apiloom_server::host::Requests;

use super::unreadable::UnreadableKind;

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
        self.warn(of, "OwnerRefInvalidNamespace", note);
    }

    /// The collector goes on without objects of a kind that cannot be read.
    pub(super) fn kind_left_out(&self, kind: &UnreadableKind) {
        let UnreadableKind { def, problem } = kind;
        let resource = def.group_resource();
        let definition = def.custom.as_ref().map(|custom| ObjectReference {
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: String::new(),
            name: resource.to_string(),
            uid: custom.uid.to_string(),
        });
        let regarding = definition.unwrap_or_else(|| ObjectReference {
            api_version: def.api_version(),
            kind: def.kind.to_string(),
            namespace: String::new(),
            name: resource.to_string(),
            uid: String::new(),
        });
        let note = format!(
            "objects of {resource} cannot be read, and the garbage collector goes on without them: {problem}"
        );
        self.warn(regarding, "UnreadableObjects", note);
    }

    fn warn(&self, regarding: ObjectReference, reason: &str, note: String) {
        let resource = ("events.k8s.io", "v1", "events");
        let endpoint = self.registry.endpoint(resource.0, resource.1, resource.2);
        if endpoint.is_none() {
            return;
        }
        self.recorder.record(NewEvent {
            event_type: EventType::Warning,
            regarding,
            related: None,
            reason: reason.to_owned(),
            action: String::new(),
            note,
        });
    }
}
