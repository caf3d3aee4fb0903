//! A list has no column type.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, printcolumn(name = "Names", path = names))]
pub struct Thing {
    pub metadata: ObjectMeta,
    pub names: Vec<String>,
}

fn main() {}
