//! A status that is no `Option` is its type's default in a new object.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, status)]
pub struct Thing {
    pub metadata: ObjectMeta,
    pub status: Status,
}

#[apiloom::api]
pub struct Status {
    pub ready: bool,
}

fn main() {}
