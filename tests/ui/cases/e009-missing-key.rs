//! Mandatory keys are asked for, with an example.

use apiloom::prelude::*;

#[apiloom::resource(namespaced, printcolumn(wide))]
pub struct Thing {
    pub metadata: ObjectMeta,
}

#[apiloom::api(convert(manual))]
pub struct Part {
    #[api(list = map)]
    pub list: Vec<String>,
    #[api(patch(key = x))]
    pub patched: Vec<String>,
    #[api(patch())]
    pub unpatched: Vec<String>,
    #[api(list = map(x, y), patch(merge))]
    pub keys: Vec<String>,
    #[api(convert(default = 1))]
    pub number: i32,
}

pub mod empty {
    apiloom::group! {}
}

pub mod no_versions {
    apiloom::group! { name = "example.com", versions = [] }
}

fn main() {}
