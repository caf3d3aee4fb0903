//! Releases have a major and a minor number.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, lifecycle(introduced = "v1", removed = "1.x"))]
pub struct Thing {
    pub metadata: ObjectMeta,
}

apiloom::group! { name = "example.com", versions = [v1], release = "1" }

fn main() {}
