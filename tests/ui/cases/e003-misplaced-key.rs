//! A key of another place says where it belongs.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, pattern = "x")]
pub struct Thing {
    pub metadata: ObjectMeta,
}

#[apiloom::api(immutable)]
pub struct Part {
    #[api(printcolumn(name = "X"), keys(each(len(max = 3))))]
    pub name: BTreeMap<String, String>,
}

#[apiloom::api]
pub enum Mode {
    #[api(required)]
    Fast,
    Secret {
        #[api(sensitive)]
        password: String,
    },
}

fn main() {}
