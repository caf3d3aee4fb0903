//! A create cannot give the status, so a new object must get along without one or have a default.

use apiloom::codegen::{schemars, serde};
use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, status)]
pub struct WithoutField {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, status)]
pub struct Required {
    pub metadata: ObjectMeta,
    #[api(required)]
    pub status: Option<Status>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema, Resource)]
#[serde(crate = "apiloom::codegen::serde")]
#[schemars(crate = "apiloom::codegen::schemars")]
#[resource(group = "example.com", version = "v1", namespaced, status)]
pub struct Derived {
    pub metadata: ObjectMeta,
    pub status: Status,
}

#[apiloom::api]
pub struct Status {
    pub ready: bool,
}

fn main() {}
