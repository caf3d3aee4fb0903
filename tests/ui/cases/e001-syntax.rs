//! What is not a list of keys is reported, and reading goes on behind it.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = , namespaced status, "plural")]
pub struct Thing {
    pub metadata: ObjectMeta,
}

#[apiloom::api]
pub struct Part {
    #[api = "text"]
    pub name: String,
}

fn main() {}
