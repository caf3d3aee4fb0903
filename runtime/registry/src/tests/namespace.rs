//! A kind of namespaces for these tests, as `apiloom-kinds` has it, with the least of its rules and of its admission plugin.

use apiloom_macros::{api, resource};
use apiloom_meta::{ApiError, GroupResource, ObjectMeta, Resource, Time};
use async_trait::async_trait;

use crate::{Admission, AdmissionRequest, Lister, Operation, RequestContext, Strategy};

#[resource(group = "", version = "v1", cluster, crate = apiloom_meta, proto(package = "k8s.io.api.core.v1"), shortname = "ns",
    verbs(skip = [delete_collection]), name_format = dns_label, generation = none, strategic_merge_patch,
    subresource(name = "status", writes = with_metadata(status)),
    subresource(name = "finalize", verbs = [update], writes = also(spec)),
    deletion(finalizers = spec.finalizers, phase = status.phase), selectable(status.phase))]
#[derive(Default)]
pub(crate) struct Namespace {
    #[api(proto = 1)]
    pub(crate) metadata: ObjectMeta,
    #[api(proto = 2, default = NamespaceSpec::default())]
    pub(crate) spec: NamespaceSpec,
    #[api(proto = 3)]
    pub(crate) status: NamespaceStatus,
}

#[api(crate = apiloom_meta)]
#[derive(Default)]
pub(crate) struct NamespaceSpec {
    #[api(proto = 1)]
    pub(crate) finalizers: Vec<String>,
}

#[api(crate = apiloom_meta)]
#[derive(Default)]
pub(crate) struct NamespaceStatus {
    #[api(proto(number = 1, omit_empty))]
    pub(crate) phase: Option<String>,
    #[api(proto = 2, list = map(condition_type), patch(merge))]
    pub(crate) conditions: Vec<NamespaceCondition>,
}

#[api(crate = apiloom_meta)]
pub(crate) struct NamespaceCondition {
    #[api(proto = 1, json = "type", default = String::new(), present)]
    pub(crate) condition_type: String,
    #[api(proto = 2, default = String::new(), present)]
    pub(crate) status: String,
    #[api(proto = 4)]
    pub(crate) last_transition_time: Option<Time>,
    #[api(proto(number = 5, omit_empty))]
    pub(crate) reason: Option<String>,
    #[api(proto(number = 6, omit_empty))]
    pub(crate) message: Option<String>,
}

/// The strategy of namespaces.
pub(crate) struct NamespaceRules;

impl Strategy<Namespace> for NamespaceRules {
    fn default(&self, object: &mut Namespace) {
        if let Some(name) = object.metadata.name.clone() {
            let label = "kubernetes.io/metadata.name".to_owned();
            object.metadata.labels.insert(label, name);
        }
    }
    fn prepare_for_create(&self, _ctx: &RequestContext, object: &mut Namespace) {
        object.status.phase = Some("Active".to_owned());
        object.spec.finalizers.push("kubernetes".to_owned());
    }
}

/// Refuses what is created in namespaces that do not exist.
pub(crate) struct NamespaceLifecycle(pub(crate) Lister<Namespace>);

#[async_trait]
impl Admission for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }
    async fn mutate(&self, request: &mut AdmissionRequest<'_>) -> Result<(), ApiError> {
        let (namespace, operation) = (request.namespace, request.operation);
        let is_within = matches!(operation, Operation::Create | Operation::Update)
            && !request.is::<Namespace>()
            && !namespace.is_empty()
            && request.has_store;
        if is_within && self.0.get_live("", namespace).await?.is_none() {
            let namespaces = GroupResource::new("", Namespace::PLURAL);
            return Err(ApiError::not_found(&namespaces, namespace));
        }
        Ok(())
    }
}
