//! API structs have named fields.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Thing(ObjectMeta);

#[apiloom::api]
pub struct Unit;

#[apiloom::api]
pub union Bits {
    a: u8,
}

fn main() {}
