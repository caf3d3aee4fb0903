//! What is no object in JSON has no numbers in Protobuf.

use std::collections::BTreeMap;

#[apiloom::api]
pub struct Flat {
    #[api(proto = 1, flatten)]
    pub rest: BTreeMap<String, i32>,
    #[api(proto(number = 2, omit_empty))]
    pub list: Vec<String>,
    #[api(proto(number = 3, omit_empty))]
    pub map: BTreeMap<String, String>,
}

#[apiloom::api]
pub struct Foreign {
    #[api(proto = 1)]
    #[serde(with = "hex")]
    #[schemars(with = "String")]
    pub color: u32,
}

#[apiloom::api(preserve_unknown)]
pub struct Open {
    #[api(proto = 1)]
    pub name: String,
}

#[apiloom::api]
pub enum Word {
    #[api(proto = 1)]
    A,
    B,
}

#[apiloom::api]
pub enum Mixed {
    #[api(proto = 1)]
    A(String),
    #[api(proto = 2)]
    B,
}

#[apiloom::api]
#[serde(tag = "type")]
pub enum Tagged {
    #[api(proto = 1)]
    A {
        #[api(proto = 1)]
        name: String,
    },
}

fn main() {}
