//! Values have the type of their key.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, singular = 3, shortname = [x, 4], status, served = "no", printcolumn(name = "A", path = metadata.name, priority = "high"), verbs(only = [1]))]
pub struct Thing {
    pub metadata: ObjectMeta,
    pub status: Option<Part>,
}

#[apiloom::api]
pub struct Part {
    #[api(len = 3, bytes = 1..9, format = 3, requires("x"), json = name, convert(with = f))]
    pub name: Option<String>,
}

#[apiloom::api(crate = "apiloom")]
pub struct Text {
    pub name: String,
}

#[apiloom::api(crate = Vec::<u8>::new())]
pub struct Call {
    pub name: String,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, graceful_delete = "30s")]
pub struct Task {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, graceful_delete = -1)]
pub struct Job {
    pub metadata: ObjectMeta,
}

fn main() {}
