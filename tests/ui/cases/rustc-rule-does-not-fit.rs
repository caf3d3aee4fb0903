//! A rule that does not fit the type is rustc's error, at the field.

use apiloom::prelude::*;

#[apiloom::api]
pub struct Part {
    #[api(len(max = 3))]
    pub number: i32,
    #[api(min = 1)]
    pub text: String,
    #[api(max = 300)]
    pub small: u8,
    #[api(list = set)]
    pub map: BTreeMap<String, String>,
    #[api(each(len(max = 3)))]
    pub numbers: Vec<i32>,
    #[api(forbidden)]
    pub always: String,
    #[api(default = true)]
    pub count: Option<i32>,
}

#[apiloom::api]
pub enum Choice {
    Counted {
        #[api(len(max = 3))]
        number: i32,
    },
}

fn main() {}
