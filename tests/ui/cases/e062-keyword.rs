//! A field whose name is a word of Rust is written with `r#`.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced,
    printcolumn(name = "Type", path = spec.type), selectable(spec.use.match, spec.name), selectable(type))]
pub struct Thing {
    pub metadata: ObjectMeta,
    pub spec: ThingSpec,
}

#[apiloom::api(union(tag = type))]
pub struct ThingSpec {
    pub r#type: String,
    #[api(requires(type))]
    pub name: Option<String>,
}

fn main() {}
