//! Names keep to the grammar of Kubernetes.

use apiloom::prelude::*;

#[apiloom::resource(group = "Example_com", version = "V1", kind = "thing", plural = "Things", singular = "a b", list_kind = "list", shortname = "-x", category = "1", store_path = "/things", namespaced)]
pub struct Thing {
    pub metadata: ObjectMeta,
    #[api(json = "a.b")]
    pub name: Option<String>,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct snake_case {
    pub metadata: ObjectMeta,
}

apiloom::group! { name = "-example", versions = [V1] }

fn main() {}
