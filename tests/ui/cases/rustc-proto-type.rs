//! A type without numbers is no type of a field with a number.

use std::collections::BTreeMap;

use apiloom::prelude::*;

#[apiloom::api]
pub struct Part {
    pub name: String,
}

#[apiloom::api]
pub struct Wrapper(Part);

#[apiloom::api]
pub struct Spec {
    #[api(proto = 1)]
    pub part: Part,
    #[api(proto = 2)]
    pub parts: BTreeMap<String, Vec<Part>>,
    #[api(proto = 3)]
    pub wrapper: Option<Wrapper>,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Thing {
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    #[api(proto = 2)]
    pub part: Option<Part>,
}

fn main() {}
