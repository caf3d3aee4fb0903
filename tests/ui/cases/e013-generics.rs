//! Generic types have no single schema name.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Thing<T> {
    pub metadata: ObjectMeta,
    pub spec: T,
}

#[apiloom::api]
pub enum Choice<'a> {
    A(&'a str),
}

fn main() {}
