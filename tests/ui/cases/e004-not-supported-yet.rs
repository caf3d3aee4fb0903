//! Keys of later versions are refused, never accepted in silence.

use apiloom::prelude::*;

#[apiloom::resource(
    group = "example.com",
    version = "v1",
    namespaced,
    gate = "X",
    strategy = S,
    rbac(aggregate_to = [view]),
    crd(name = "x"),
    labels(a = "b"),
    annotations(a = "b"),
    model = "io.x",
    lifecycle(introduced = "1.0", warning = "w"),
)]
pub struct Thing {
    pub metadata: ObjectMeta,
}

#[apiloom::api]
pub struct Part {
    #[api(
        gate = "X",
        if_gate("X", required),
        unless_gate("X", required),
        alpha(required),
        beta(required),
        item(merge),
        item(kind = "x"),
        at(name, required),
        when(name == "x", required),
        since = "1.3",
        schema_with = f,
        schema_doc = skip,
    )]
    pub name: String,
}

#[apiloom::api(union(tag = "type"))]
pub enum Choice {
    A,
}

fn main() {}
