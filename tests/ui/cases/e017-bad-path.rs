//! Paths are chains of field names.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, printcolumn(name = "A", path = spec.list[0]), printcolumn(name = "B", json_path = ".spec.list["), selectable(spec(), spec.0, ".spec.list[*]"))]
pub struct Thing {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(
    group = "example.com",
    version = "v1",
    namespaced,
    printcolumn(name = "A", json_path = ".status.conditions[?(@.type==\"Ready\")"),
    printcolumn(name = "B", json_path = ".status.conditions[?(type==\"Ready\")].status"),
    printcolumn(name = "C", json_path = ".status.conditions[?(@.type=Ready)].status"),
    printcolumn(name = "D", json_path = ".status.conditions[?(@.type==Ready)].status"),
    printcolumn(name = "E", json_path = ".status.conditions[Ready].status"),
    printcolumn(name = "F", json_path = ".metadata.labels['a"),
    printcolumn(condition = "Ready?"),
    printcolumn(name = "H", condition = "Ready", path = spec.list)
)]
pub struct Filtered {
    pub metadata: ObjectMeta,
}

fn main() {}
