//! apiVersion and kind are the codec's.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Thing {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
}

fn main() {}
