//! Scale: paths are below `spec` and `status`, and rustc checks their types.

use apiloom::prelude::*;

#[apiloom::resource(
    group = "example.com",
    version = "v1",
    namespaced,
    scale(spec = status.replicas, status = status, selector = metadata.name, replicas = spec.replicas),
    subresource(name = "scale", verbs = [get]),
)]
pub struct Thing {
    pub metadata: ObjectMeta,
    pub spec: Spec,
    pub status: Status,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, scale(selector = ".spec.selector"))]
pub struct Other {
    pub metadata: ObjectMeta,
}

// A list is not what a Scale shows, and the last field does not exist.
#[apiloom::resource(group = "example.com", version = "v1", namespaced,
    scale(spec = spec.large, status = status.replicas, selector = status.list))]
pub struct Third {
    pub metadata: ObjectMeta,
    pub spec: Spec,
    pub status: Status,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, scale(spec = spec.replica, status = status.replicas))]
pub struct Fourth {
    pub metadata: ObjectMeta,
    pub spec: Spec,
    pub status: Status,
}

// A simple kind has no path, so it has nothing below one.
#[apiloom::resource(group = "example.com", version = "v1", simple, namespaced, scale(spec = spec.replicas, status = status.replicas))]
pub struct Simple {
    pub metadata: ObjectMeta,
    pub spec: Spec,
    pub status: Status,
}

#[apiloom::api]
pub struct Spec {
    pub replicas: Option<i32>,
    pub large: i64,
}

#[apiloom::api]
#[derive(Default)]
pub struct Status {
    pub replicas: i32,
    pub list: Vec<String>,
}

fn main() {}
