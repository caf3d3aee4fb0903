//! Introduced, deprecated, removed, in this order; 1.10 comes after 1.9.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, lifecycle(introduced = "1.10", deprecated = "1.9", removed = "1.2"))]
pub struct Thing {
    pub metadata: ObjectMeta,
}

fn main() {}
