//! A wrong field in a path is rustc's error, at the user's token, through an Option.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, printcolumn(name = "Type", path = spec.refernce_type), selectable(spec.nothing))]
pub struct Thing {
    pub metadata: ObjectMeta,
    pub spec: Option<Spec>,
}

#[apiloom::api]
pub struct Spec {
    pub reference_type: Option<String>,
}

fn main() {}
