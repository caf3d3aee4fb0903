//! The built-in kinds in a registry: their registration, namespaces, and the schemas of definitions.
#![cfg(all(
    feature = "rules",
    feature = "apiextensions",
    feature = "authentication",
    feature = "authorization",
    feature = "coordination",
    feature = "rbac"
))]
#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(
    clippy::needless_pass_by_value,
    reason = "documents read better at the call as what `json!` gives"
)]

mod built_in;
mod definitions;
mod namespaces;

use std::sync::Arc;

use apiloom_kinds::{BuiltIn, register_all};
use apiloom_meta::{ApiError, Object, ObjectMeta, Resource as _, StatusReason};
use apiloom_registry::{
    CreateOptions, DeleteOptions, DeleteResult, Endpoint, GetOptions, Registry, RegistryBuilder,
    RequestContext, UpdateOptions, WriteRequest,
};
use apiloom_storage::{Memory, Storage};
use serde_json::{Value, json};

/// A kind of a program, with namespaces.
#[apiloom_macros::resource(group = "test.example.com", version = "v1", namespaced, crate = apiloom_meta)]
#[derive(Default)]
struct Widget {
    metadata: ObjectMeta,
}

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}
