//! Indexes of local copies: what is wrong in the declaration.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced,
    index("node"),
    index(name = "node"),
    index(name = "Node", path = spec),
    index(name = "twice", path = spec),
    index(name = "twice", path = spec),
    index(name = "json", path = ".spec"),
)]
pub struct Bad {
    pub metadata: ObjectMeta,
    pub spec: Option<String>,
}

fn main() {}
