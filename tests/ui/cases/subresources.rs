//! Subresources and the deletion of containers: every error at its token.

use apiloom::codegen::{schemars, serde};
use apiloom::prelude::*;

#[apiloom::resource(
    group = "example.com",
    version = "v1",
    namespaced,
    status,
    subresource(name = "status", writes = only(status)),
    subresource(name = "Approval", verbs = [get, list, gte, get], writes = only(aproval)),
    subresource(verbs = [get]),
    subresource(name = "seal", verb = [get], write = also(spec)),
    subresource(name = "open", verbs = [], writes = also(spec, status)),
    subresource(name = "close", verbs = [patch], writes = except(spec)),
    subresource(name = "meta", verbs = [update], writes = also(metadata)),
    subresource("rollback"),
    subresource = "rollback",
    deletion(finalizers = spec.finalizers),
)]
pub struct Thing {
    pub metadata: ObjectMeta,
    pub spec: Option<String>,
    pub approval: Option<String>,
    pub status: Option<String>,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced,
    subresource(name = "status", verbs = [get]), subresource(name = "approval", writes = only(approval)))]
pub struct Other {
    pub metadata: ObjectMeta,
    #[api(required)]
    pub approval: Option<String>,
    pub status: Option<String>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema, Resource)]
#[serde(crate = "apiloom::codegen::serde")]
#[schemars(crate = "apiloom::codegen::schemars")]
#[resource(group = "example.com", version = "v1", namespaced, subresource(name = "approval", writes = only(approval)))]
pub struct Derived {
    pub metadata: ObjectMeta,
    pub approval: Approval,
}

#[apiloom::api]
pub struct Approval {
    pub by: String,
}

// Paths are checked by rustc.
#[apiloom::resource(group = "example.com", version = "v1", cluster, deletion(finalizers = approval.finalizers, phase = approval.by))]
pub struct Room {
    pub metadata: ObjectMeta,
    pub approval: Approval,
}

// Without a store there is only create.
#[apiloom::resource(group = "example.com", version = "v1", cluster, store = none, status, verbs(skip = [get]), storage)]
pub struct Review {
    pub metadata: ObjectMeta,
    pub status: Option<String>,
}

#[apiloom::resource(group = "example.com", version = "v1", cluster, store = S)]
pub struct Elsewhere {
    pub metadata: ObjectMeta,
}

fn main() {}
