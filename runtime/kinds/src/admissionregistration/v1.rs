//! Version v1 of the group admissionregistration.k8s.io.

use apiloom_macros::{api, resource};
use apiloom_meta::{LabelSelector, ObjectMeta};

/// ValidatingWebhookConfiguration names webhooks that are asked whether a write is allowed, all of them at once.
#[resource(group = "admissionregistration.k8s.io", version = "v1", cluster, crate = apiloom_meta,
    proto(package = "k8s.io.api.admissionregistration.v1"), category = "api-extensions",
    store_path = "validatingwebhookconfigurations", unconditional_update = false, strategic_merge_patch,
    printcolumn(name = "Webhooks", with = ValidatingWebhookConfiguration::count, doc = "The number of webhooks."),
    printcolumn(name = "Age", path = metadata.creation_timestamp, doc = "How long ago the server created the object."))]
#[derive(Default)]
pub struct ValidatingWebhookConfiguration {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The webhooks, and what they are asked about.
    #[api(proto = 2, list = map(name), duplicates, patch(merge))]
    pub webhooks: Vec<ValidatingWebhook>,
}

/// MutatingWebhookConfiguration names webhooks that may change the object of a write, one after the other.
#[resource(group = "admissionregistration.k8s.io", version = "v1", cluster, crate = apiloom_meta,
    proto(package = "k8s.io.api.admissionregistration.v1"), category = "api-extensions",
    store_path = "mutatingwebhookconfigurations", unconditional_update = false, strategic_merge_patch,
    printcolumn(name = "Webhooks", with = MutatingWebhookConfiguration::count, doc = "The number of webhooks."),
    printcolumn(name = "Age", path = metadata.creation_timestamp, doc = "How long ago the server created the object."))]
#[derive(Default)]
pub struct MutatingWebhookConfiguration {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The webhooks, and what they are asked about.
    #[api(proto = 2, list = map(name), duplicates, patch(merge))]
    pub webhooks: Vec<MutatingWebhook>,
}

/// ValidatingWebhook is a webhook that allows or refuses writes.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct ValidatingWebhook {
    /// The name, with at least three segments: image-policy.example.com.
    #[api(proto = 1, default = String::new(), present)]
    pub name: String,
    /// How to reach the webhook.
    #[api(proto = 2, default = WebhookClientConfig::default(), present)]
    pub client_config: WebhookClientConfig,
    /// The writes that it is asked about: those that one of these matches.
    #[api(proto = 3, list = atomic)]
    pub rules: Vec<RuleWithOperations>,
    /// What happens if the webhook cannot be asked: Fail, the default, refuses the write, Ignore goes on without it.
    #[api(proto = 4)]
    pub failure_policy: Option<String>,
    /// Whether rules match writes in other versions too: Equivalent, the default, converts the objects to the version of the rule; Exact
    /// asks only about the versions that rules name.
    #[api(proto = 9)]
    pub match_policy: Option<String>,
    /// The labels of the namespaces of objects. Objects of the cluster are always asked about, but namespaces by their own labels.
    #[api(proto = 5)]
    pub namespace_selector: Option<LabelSelector>,
    /// The labels of objects, of which the new or the present one has to match.
    #[api(proto = 10)]
    pub object_selector: Option<LabelSelector>,
    /// Whether the webhook changes something elsewhere: None, or NoneOnDryRun. Others are not asked about dry runs, which fail.
    #[api(proto = 6)]
    pub side_effects: Option<String>,
    /// How long a call may take, in seconds: 1 to 30, 10 by default.
    #[api(proto = 7)]
    pub timeout_seconds: Option<i32>,
    /// The versions of AdmissionReview that the webhook takes, preferred first: v1 and v1beta1.
    #[api(proto = 8, list = atomic)]
    pub admission_review_versions: Vec<String>,
    /// Expressions in CEL, all of which have to be true: at most 64.
    #[api(proto = 11, list = map(name), duplicates, patch(merge))]
    pub match_conditions: Vec<MatchCondition>,
}

/// MutatingWebhook is a webhook that allows, changes or refuses writes.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct MutatingWebhook {
    /// The name, with at least three segments: image-policy.example.com.
    #[api(proto = 1, default = String::new(), present)]
    pub name: String,
    /// How to reach the webhook.
    #[api(proto = 2, default = WebhookClientConfig::default(), present)]
    pub client_config: WebhookClientConfig,
    /// The writes that it is asked about: those that one of these matches.
    #[api(proto = 3, list = atomic)]
    pub rules: Vec<RuleWithOperations>,
    /// What happens if the webhook cannot be asked: Fail, the default, refuses the write, Ignore goes on without it.
    #[api(proto = 4)]
    pub failure_policy: Option<String>,
    /// Whether rules match writes in other versions too: Equivalent, the default, converts the objects to the version of the rule; Exact
    /// asks only about the versions that rules name.
    #[api(proto = 9)]
    pub match_policy: Option<String>,
    /// The labels of the namespaces of objects. Objects of the cluster are always asked about, but namespaces by their own labels.
    #[api(proto = 5)]
    pub namespace_selector: Option<LabelSelector>,
    /// The labels of objects, of which the new or the present one has to match.
    #[api(proto = 11)]
    pub object_selector: Option<LabelSelector>,
    /// Whether the webhook changes something elsewhere: None, or NoneOnDryRun. Others are not asked about dry runs, which fail.
    #[api(proto = 6)]
    pub side_effects: Option<String>,
    /// How long a call may take, in seconds: 1 to 30, 10 by default.
    #[api(proto = 7)]
    pub timeout_seconds: Option<i32>,
    /// The versions of AdmissionReview that the webhook takes, preferred first: v1 and v1beta1.
    #[api(proto = 8, list = atomic)]
    pub admission_review_versions: Vec<String>,
    /// Whether the webhook is asked once more if the object changed after it: Never, the default, or IfNeeded.
    #[api(proto = 10)]
    pub reinvocation_policy: Option<String>,
    /// Expressions in CEL, all of which have to be true: at most 64.
    #[api(proto = 12, list = map(name), duplicates, patch(merge))]
    pub match_conditions: Vec<MatchCondition>,
}

/// RuleWithOperations matches writes by their operation and their resource.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct RuleWithOperations {
    /// CREATE, UPDATE, DELETE and CONNECT; `*` for all.
    #[api(proto = 1, list = atomic)]
    pub operations: Vec<String>,
    /// The resources.
    #[api(proto = 2, flatten)]
    pub rule: Rule,
}

/// Rule matches resources.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct Rule {
    /// The groups; the empty one is core, `*` is all.
    #[api(proto = 1, list = atomic)]
    pub api_groups: Vec<String>,
    /// The versions; `*` is all.
    #[api(proto = 2, list = atomic)]
    pub api_versions: Vec<String>,
    /// The resources: `pods`, `pods/log` for a subresource, `pods/*` for all of them, `*/scale` for that of all resources, `*` for all
    /// resources without subresources, `*/*` with them.
    #[api(proto = 3, list = atomic)]
    pub resources: Vec<String>,
    /// Cluster, Namespaced, or `*`, the default, for both. Namespaces are resources of the cluster.
    #[api(proto = 4)]
    pub scope: Option<String>,
}

/// WebhookClientConfig says how to reach a webhook: by a URL or by a service.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct WebhookClientConfig {
    /// The URL of the webhook.
    #[api(proto = 3)]
    pub url: Option<String>,
    /// The service of the webhook.
    #[api(proto = 1)]
    pub service: Option<ServiceReference>,
    /// The certificate authorities of the webhook, in PEM and base64; those of the system if it is not set.
    #[api(proto(number = 2, omit_empty))]
    pub ca_bundle: Option<Vec<u8>>,
}

/// ServiceReference names a service.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct ServiceReference {
    /// The namespace of the service.
    #[api(proto = 1, default = String::new(), present)]
    pub namespace: String,
    /// The name of the service.
    #[api(proto = 2, default = String::new(), present)]
    pub name: String,
    /// The path of requests.
    #[api(proto = 3)]
    pub path: Option<String>,
    /// The port; 443 if it is not set.
    #[api(proto = 4)]
    pub port: Option<i32>,
}

/// MatchCondition is an expression that has to be true for a webhook to be asked.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct MatchCondition {
    /// The name, for logs and errors.
    #[api(proto = 1, default = String::new(), present)]
    pub name: String,
    /// The expression in CEL, about `object`, `oldObject` and `request`.
    #[api(proto = 2, default = String::new(), present)]
    pub expression: String,
}

impl MutatingWebhook {
    /// Refuses a write about which the webhook cannot be asked.
    pub const FAIL: &str = "Fail";
    /// Goes on without a webhook that cannot be asked.
    pub const IGNORE: &str = "Ignore";
    /// Matches writes in other versions too.
    pub const EQUIVALENT: &str = "Equivalent";
    /// Matches writes in the versions that rules name alone.
    pub const EXACT: &str = "Exact";
    /// Asks the webhook once.
    pub const NEVER: &str = "Never";
    /// Asks the webhook once more if the object changed after it.
    pub const IF_NEEDED: &str = "IfNeeded";
    /// What a webhook says that changes nothing elsewhere, or nothing in a dry run.
    pub const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
    /// All that configurations of older releases say of side effects.
    pub const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
}

/// Has the fields of a validating webhook, and one more.
impl From<ValidatingWebhook> for MutatingWebhook {
    fn from(webhook: ValidatingWebhook) -> Self {
        Self {
            name: webhook.name,
            client_config: webhook.client_config,
            rules: webhook.rules,
            failure_policy: webhook.failure_policy,
            match_policy: webhook.match_policy,
            namespace_selector: webhook.namespace_selector,
            object_selector: webhook.object_selector,
            side_effects: webhook.side_effects,
            timeout_seconds: webhook.timeout_seconds,
            admission_review_versions: webhook.admission_review_versions,
            reinvocation_policy: None,
            match_conditions: webhook.match_conditions,
        }
    }
}

/// Without the reinvocation policy.
impl From<MutatingWebhook> for ValidatingWebhook {
    fn from(webhook: MutatingWebhook) -> Self {
        Self {
            name: webhook.name,
            client_config: webhook.client_config,
            rules: webhook.rules,
            failure_policy: webhook.failure_policy,
            match_policy: webhook.match_policy,
            namespace_selector: webhook.namespace_selector,
            object_selector: webhook.object_selector,
            side_effects: webhook.side_effects,
            timeout_seconds: webhook.timeout_seconds,
            admission_review_versions: webhook.admission_review_versions,
            match_conditions: webhook.match_conditions,
        }
    }
}

impl ValidatingWebhookConfiguration {
    /// The number of webhooks.
    fn count(&self) -> i64 {
        i64::try_from(self.webhooks.len()).unwrap_or(i64::MAX)
    }
}

impl MutatingWebhookConfiguration {
    /// The number of webhooks.
    fn count(&self) -> i64 {
        i64::try_from(self.webhooks.len()).unwrap_or(i64::MAX)
    }
}
