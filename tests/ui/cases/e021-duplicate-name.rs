//! Names are unique.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, shortname = ["a", "a"], printcolumn(name = "A", path = metadata.name), printcolumn(name = "A", path = metadata.uid), verbs(only = [get, get]))]
pub struct Thing {
    pub metadata: ObjectMeta,
}

#[apiloom::api(union(tag = tag))]
pub struct Part {
    pub tag: Option<String>,
    #[api(json = "b", member = "M")]
    pub a: Option<String>,
    #[api(member = "M", update(no_set, no_set))]
    pub b: Option<String>,
    #[api(list = map(x, x))]
    pub list: Vec<String>,
}

#[apiloom::api]
pub enum Mode {
    A,
    #[api(json = "A")]
    B,
}

apiloom::group! { name = "example.com", versions = [v1, v1] }

fn main() {}
