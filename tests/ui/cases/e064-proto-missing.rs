//! All parts of a Protobuf message have numbers, or none.

use apiloom::prelude::*;

#[apiloom::api(proto(reserved = [7]))]
pub struct Part {
    #[api(proto = 3)]
    pub numbered: Option<String>,
    pub other: Option<String>,
    pub third: Option<String>,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Thing {
    pub metadata: ObjectMeta,
    #[api(proto = 2)]
    pub spec: Option<String>,
    pub status: Option<String>,
}

#[apiloom::api]
pub enum Choice {
    #[api(proto = 1)]
    A(String),
    B(String),
}

#[apiloom::api]
pub enum Inner {
    A {
        #[api(proto = 1)]
        name: String,
    },
}

#[apiloom::api(proto(reserved = [1]))]
pub struct None {
    pub name: String,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, proto(package = "a.b"))]
pub struct Plain {
    pub metadata: ObjectMeta,
    pub spec: Option<String>,
}

/// The error of a type is not reported again where it is used.
#[apiloom::api]
pub struct User {
    #[api(proto = 1)]
    pub part: Part,
}

fn main() {}
