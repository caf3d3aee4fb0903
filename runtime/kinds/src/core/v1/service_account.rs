//! ServiceAccount.

use apiloom_macros::{api, resource};
use apiloom_meta::ObjectMeta;

use super::ObjectReference;

/// ServiceAccount is an identity for programs.
#[resource(group = "", version = "v1", namespaced, crate = apiloom_meta, proto(package = "k8s.io.api.core.v1"), shortname = "sa", generation = none, strategic_merge_patch,
    printcolumn(name = "Secrets", with = ServiceAccount::count, doc = "The number of secrets that the account lists."))]
#[derive(Default)]
pub struct ServiceAccount {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The secrets of the account's namespace that pods which run as the account may mount. Only their names are kept.
    #[api(proto = 2, list = map(name), patch(merge))]
    pub secrets: Vec<ObjectReference>,
    /// The secrets of the account's namespace with credentials for the images of its pods.
    #[api(proto = 3, list = atomic)]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Whether pods that run as the account get its token, unless they say otherwise.
    #[api(proto = 4)]
    pub automount_service_account_token: Option<bool>,
}

impl ServiceAccount {
    fn count(&self) -> i64 {
        i64::try_from(self.secrets.len()).unwrap_or(i64::MAX)
    }
}

/// LocalObjectReference names an object of the same namespace.
#[api(crate = apiloom_meta, atomic)]
#[derive(Default)]
pub struct LocalObjectReference {
    /// The name of the object.
    #[api(proto(number = 1, omit_empty), default = String::new())]
    pub name: String,
}
