//! Paths are chains of field names.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, printcolumn(name = "A", path = spec.list[0]), printcolumn(name = "B", json_path = ".spec.list[*]"), selectable(spec(), spec.0))]
pub struct Thing {
    pub metadata: ObjectMeta,
}

fn main() {}
