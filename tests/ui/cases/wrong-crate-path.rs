//! A wrong path of `crate` is reported once per attribute, at the path.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, crate = nowhere)]
pub struct Thing {
    pub metadata: ObjectMeta,
    #[api(len = 1..=3)]
    pub names: Option<String>,
    pub part: Part,
}

#[apiloom::api(crate = ::std)]
pub struct Part {
    #[api(default = 3, range = 1..=9)]
    pub number: i32,
}

#[apiloom::api(crate = crate::lost)]
pub enum Mode {
    A,
    B(String),
}

mod group {
    apiloom::group! { name = "example.com", versions = [v1], crate = super::super::above }
}

fn main() {}
