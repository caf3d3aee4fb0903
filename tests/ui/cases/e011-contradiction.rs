//! Keys that say opposite things are refused.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, cluster, hub, spoke_of = Other, readonly, verbs(only = [get], skip = [list]), printcolumn(name = "A", path = metadata.name, with = f, wide, priority = 1))]
pub struct Thing {
    pub metadata: ObjectMeta,
}

#[apiloom::api]
pub struct Part {
    #[api(required, default = "x", forbidden)]
    pub name: Option<String>,
    #[api(min = 1, gt = 0, range = 1..=2)]
    pub number: i32,
    #[api(requires(name, me), conflicts(name))]
    pub me: Option<String>,
    #[api(range = 1..=9, default = 0)]
    pub low: i32,
    #[api(atomic, list = set)]
    pub list: Vec<String>,
    #[api(patch(merge, replace))]
    pub patched: Vec<String>,
    #[api(present, required)]
    pub sent: Vec<String>,
    #[api(present)]
    pub always: String,
    #[api(present)]
    pub omitted: Option<String>,
}

#[apiloom::api]
#[derive(Debug)]
pub struct Login {
    #[api(sensitive)]
    pub password: String,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, stored_as = a::Thing, storage, store_path = "x")]
pub struct Copy {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(group = "example.com", version = "v1", cluster, graceful_delete = 30,
    deletion(finalizers = spec.finalizers, phase = status.phase, dependents = orphan, returns = status))]
pub struct Room {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(group = "example.com", version = "v1", cluster, store = none, graceful_delete = 30)]
pub struct Review {
    pub metadata: ObjectMeta,
}

/// Its derives are the user's own.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema, Resource)]
#[resource(group = "example.com", version = "v1", namespaced)]
pub struct Account {
    pub metadata: ObjectMeta,
    #[api(sensitive)]
    pub password: String,
}

#[apiloom::api]
pub enum Mode {
    #[api(unknown, json = "x")]
    Other(String),
}

fn main() {}
