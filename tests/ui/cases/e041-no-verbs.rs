//! A kind without verbs could not be used.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, verbs(only = []))]
pub struct First {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, verbs())]
pub struct Second {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, verbs(skip = [get, list, watch, create, update, patch, delete, delete_collection]))]
pub struct Third {
    pub metadata: ObjectMeta,
}

/// Of two mistakes the one that follows from the other is not told.
#[apiloom::resource(group = "example.com", version = "v1", namespaced, verbs(only = [red]))]
pub struct Fourth {
    pub metadata: ObjectMeta,
}

fn main() {}
