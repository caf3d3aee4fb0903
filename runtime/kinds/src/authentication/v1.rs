//! Version v1 of the group authentication.k8s.io: reviews, which are created and answered, and not stored.

use std::collections::BTreeMap;

use apiloom_macros::{api, resource};
use apiloom_meta::ObjectMeta;

/// SelfSubjectReview asks who is asking, after all authentication and impersonation.
#[resource(group = "authentication.k8s.io", version = "v1", cluster, crate = apiloom_meta, store = none,
    proto(package = "k8s.io.api.authentication.v1"))]
#[derive(Default)]
pub struct SelfSubjectReview {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The answer, which the server writes.
    #[api(proto = 2, default = SelfSubjectReviewStatus::default())]
    pub status: SelfSubjectReviewStatus,
}

/// SelfSubjectReviewStatus says who is asking.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct SelfSubjectReviewStatus {
    /// The user.
    #[api(proto = 1, default = UserInfo::default())]
    pub user_info: UserInfo,
}

/// UserInfo is a user.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct UserInfo {
    /// The name, unique among the active users.
    #[api(proto(number = 1, omit_empty))]
    pub username: Option<String>,
    /// The unique id over time.
    #[api(proto(number = 2, omit_empty))]
    pub uid: Option<String>,
    /// The groups.
    #[api(proto = 3, list = atomic)]
    pub groups: Vec<String>,
    /// Further attributes of the authenticator.
    #[api(proto = 4)]
    pub extra: BTreeMap<String, Vec<String>>,
}
