//! What the macros make of annotated types: JSON form, schema keywords, definitions, hooks, conversion.

#![allow(missing_docs, unreachable_pub, reason = "test types")]

#[path = "macros/wardle.rs"]
mod wardle;

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", cluster)]
pub struct Policy {
    pub metadata: ObjectMeta,
}

#[test]
fn a_bare_kind_has_kubernetes_defaults() {
    let def = Policy::definition();
    assert_eq!(
        (def.group, def.version, def.kind, def.plural),
        ("example.com", "v1", "Policy", "policies")
    );
    assert_eq!(
        (def.singular.as_str(), def.list_kind.as_str()),
        ("policy", "PolicyList")
    );
}
