//! Subresources with a handler, and with streams: what is wrong in the declaration. A type that does not answer its verbs is in `tests/tests/generator_errors.rs`.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced,
    subresource(name = "both", verbs = [create], handler = Restarter, writes = also(spec)),
    subresource(name = "silent", handler = Restarter),
    subresource(name = "patched", verbs = [patch, create], handler = Restarter),
    subresource(name = "made", verbs = [create], writes = also(spec)),
    connect("exec"),
    connect(name = "log", verbs = [get]),
    connect(name = "both", verbs = [watch, get], handler = Logs, writes = also(spec)),
    connect(verbs = [], handler = Logs),
)]
pub struct Bad {
    pub metadata: ObjectMeta,
    pub spec: Option<String>,
}

fn main() {}
