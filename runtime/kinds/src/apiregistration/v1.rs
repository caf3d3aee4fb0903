//! Version v1 of the group apiregistration.k8s.io.

use apiloom_macros::{api, resource};
use apiloom_meta::{Conditions as _, ObjectMeta, Time};

use crate::condition::status_condition;

/// APIService says who serves a version of a group: this server itself, or the one behind a service, to which requests for the
/// version are forwarded. Its name is `<spec.version>.<spec.group>`.
#[resource(group = "apiregistration.k8s.io", version = "v1", cluster, crate = apiloom_meta,
    proto(package = "k8s.io.kube_aggregator.pkg.apis.apiregistration.v1"), category = "api-extensions",
    store_path = "apiregistration.k8s.io/apiservices", status, generation = none, name_format = path_segment,
    unconditional_update = false, strategic_merge_patch,
    printcolumn(name = "Service", with = APIService::server, doc = "The service that serves the version, or Local."),
    printcolumn(name = "Available", with = APIService::availability, doc = "Whether the version can be used."))]
#[derive(Default)]
pub struct APIService {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The version, and who serves it.
    #[api(proto = 2, default = APIServiceSpec::default())]
    pub spec: APIServiceSpec,
    /// Whether the version can be used.
    #[api(proto = 3, default = APIServiceStatus::default())]
    pub status: APIServiceStatus,
}

/// APIServiceSpec names a version of a group, and the server of it.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct APIServiceSpec {
    /// The service of the server, which speaks HTTPS. If it is not set, this server itself serves the version.
    #[api(proto = 1)]
    pub service: Option<ServiceReference>,
    /// The group; empty for core.
    #[api(proto(number = 2, omit_empty))]
    pub group: Option<String>,
    /// The version, such as v1.
    #[api(proto(number = 3, omit_empty))]
    pub version: Option<String>,
    /// Whether any certificate of the server is accepted. Not recommended: use caBundle.
    #[api(proto(number = 4, omit_empty), json = "insecureSkipTLSVerify")]
    pub insecure_skip_tls_verify: Option<bool>,
    /// The certificate authorities of the server, in PEM and base64; those of the system if it is not set.
    #[api(proto(number = 5, omit_empty))]
    pub ca_bundle: Option<Vec<u8>>,
    /// The priority of the group at least: 1 to 20000. Clients prefer groups with higher priorities, and of those with equal
    /// ones the first by name.
    #[api(proto = 7, default = 0)]
    pub group_priority_minimum: i32,
    /// The priority of the version in its group: 1 to 1000. Of versions with equal ones the later and more stable is preferred.
    #[api(proto = 8, default = 0)]
    pub version_priority: i32,
}

/// ServiceReference names a service.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct ServiceReference {
    /// The namespace of the service.
    #[api(proto(number = 1, omit_empty))]
    pub namespace: Option<String>,
    /// The name of the service.
    #[api(proto(number = 2, omit_empty))]
    pub name: Option<String>,
    /// The port of the service; 443 if it is not set.
    #[api(proto = 3, default = 443)]
    pub port: i32,
}

/// APIServiceStatus says whether a version can be used.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct APIServiceStatus {
    /// The state, by type.
    #[api(proto = 1, list = map(condition_type), patch(merge))]
    pub conditions: Vec<APIServiceCondition>,
}

/// APIServiceCondition is one part of the state.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct APIServiceCondition {
    /// The type: Available.
    #[api(proto = 1, json = "type", default = String::new(), present)]
    pub condition_type: String,
    /// True, False or Unknown.
    #[api(proto = 2, default = String::new(), present)]
    pub status: String,
    /// When the status changed last.
    #[api(proto = 3)]
    pub last_transition_time: Option<Time>,
    /// Why, in one word.
    #[api(proto(number = 4, omit_empty))]
    pub reason: Option<String>,
    /// Why, for people.
    #[api(proto(number = 5, omit_empty))]
    pub message: Option<String>,
}

status_condition!(APIServiceCondition);

impl APIService {
    /// The type of the condition that says whether the version can be used.
    pub const AVAILABLE: &str = "Available";

    /// The condition Available.
    pub fn available(&self) -> Option<&APIServiceCondition> {
        self.status.conditions.condition(Self::AVAILABLE)
    }

    /// The namespace and name of the service, or Local.
    fn server(&self) -> String {
        let Some(service) = &self.spec.service else {
            return "Local".to_owned();
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        format!("{}/{}", text(&service.namespace), text(&service.name))
    }

    /// The status of the condition Available, with the reason unless it is true.
    fn availability(&self) -> String {
        let Some(condition) = self.available() else {
            return "Unknown".to_owned();
        };
        let reason = condition.reason.as_deref().unwrap_or_default();
        if condition.status == "True" || reason.is_empty() {
            return condition.status.clone();
        }
        format!("{} ({reason})", condition.status)
    }
}
