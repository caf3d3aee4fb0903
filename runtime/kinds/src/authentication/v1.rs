//! Version v1 of the group authentication.k8s.io: reviews, which are created and answered, and not stored.

use std::collections::BTreeMap;

use apiloom_macros::{api, resource};
use apiloom_meta::{ObjectMeta, Time};

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

/// TokenReview asks whose a token is.
#[resource(group = "authentication.k8s.io", version = "v1", cluster, crate = apiloom_meta, store = none,
    proto(package = "k8s.io.api.authentication.v1"))]
#[derive(Default)]
pub struct TokenReview {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// The question.
    #[api(proto = 2, default = TokenReviewSpec::default(), present)]
    pub spec: TokenReviewSpec,
    /// The answer, which the server writes.
    #[api(proto = 3, default = TokenReviewStatus::default())]
    pub status: TokenReviewStatus,
}

/// TokenReviewSpec is a token that a client has presented.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct TokenReviewSpec {
    /// The token.
    #[api(proto(number = 1, omit_empty), sensitive)]
    pub token: Option<String>,
    /// For one of these the token must be. Without any it must be for the server that answers.
    #[api(proto = 2, list = atomic)]
    pub audiences: Vec<String>,
}

/// TokenReviewStatus says whose a token is.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct TokenReviewStatus {
    /// Whether the token is that of a known user.
    #[api(proto(number = 1, omit_empty))]
    pub authenticated: Option<bool>,
    /// The user.
    #[api(proto = 2, default = UserInfo::default())]
    pub user: UserInfo,
    /// The audiences of the question, or of the server, that the token is for. A client that asked for some must find one of them here.
    #[api(proto = 4, list = atomic)]
    pub audiences: Vec<String>,
    /// Why the token could not be checked.
    #[api(proto(number = 3, omit_empty))]
    pub error: Option<String>,
}

/// TokenRequest asks for a token of a service account.
#[resource(group = "authentication.k8s.io", version = "v1", namespaced, crate = apiloom_meta, store = none,
    proto(package = "k8s.io.api.authentication.v1"))]
#[derive(Default)]
pub struct TokenRequest {
    /// Standard object's metadata: those of the account, if they are given.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// What the token is for.
    #[api(proto = 2, default = TokenRequestSpec::default(), present)]
    pub spec: TokenRequestSpec,
    /// The token, which the server writes.
    #[api(proto = 3, default = TokenRequestStatus::default())]
    pub status: TokenRequestStatus,
}

/// TokenRequestSpec says what a token is for, and for how long.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct TokenRequestSpec {
    /// Who may accept the token. Each of them may use it to be the account at all the others. Default: the server itself.
    #[api(proto = 1, list = atomic, default = Vec::new(), present)]
    pub audiences: Vec<String>,
    /// For how many seconds the token is asked for; the server may give another time.
    #[api(proto = 4, default = 3600)]
    pub expiration_seconds: Option<i64>,
    /// The object with whose deletion the token ends.
    #[api(proto = 3, nullable, default = None)]
    pub bound_object_ref: Option<BoundObjectReference>,
}

/// BoundObjectReference names an object that a token is bound to.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct BoundObjectReference {
    /// The kind: Secret.
    #[api(proto(number = 1, omit_empty))]
    pub kind: Option<String>,
    /// The group and version of the kind.
    #[api(proto(number = 2, omit_empty))]
    pub api_version: Option<String>,
    /// The name, in the namespace of the account.
    #[api(proto(number = 3, omit_empty))]
    pub name: Option<String>,
    /// The uid, which the object must have if it is given.
    #[api(proto(number = 4, omit_empty))]
    pub uid: Option<String>,
}

/// TokenRequestStatus is a token.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct TokenRequestStatus {
    /// The token.
    #[api(proto = 1, default = String::new(), present, sensitive)]
    pub token: String,
    /// When the token ends.
    #[api(proto = 2, nullable, default = None, present)]
    pub expiration_timestamp: Option<Time>,
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
