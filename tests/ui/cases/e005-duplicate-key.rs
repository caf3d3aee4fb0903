//! A key stands in one place.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, status, status, column(name = "A", name = "B", path = metadata.name))]
pub struct Thing {
    pub metadata: ObjectMeta,
    pub status: Option<Part>,
}

#[apiloom::api]
pub struct Part {
    #[api(len(max = 3), len(min = 1))]
    pub name: String,
}

fn main() {}
