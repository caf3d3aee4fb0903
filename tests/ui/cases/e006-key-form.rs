//! A key has one form: a flag, a value or a list.

use apiloom::prelude::*;

#[apiloom::resource(group, version("v1"), namespaced = true, verbs = [get], printcolumn, shortname, lifecycle(replacement("a", "b")), served(no))]
pub struct Thing {
    pub metadata: ObjectMeta,
}

#[apiloom::api(convert(peer = Part, hub_only(a)))]
pub struct Part {
    #[api(len, min, default, list = set(name), convert = drop, nullable(true))]
    pub names: Vec<String>,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, graceful_delete, deletion())]
pub struct Task {
    pub metadata: ObjectMeta,
}

fn main() {}
