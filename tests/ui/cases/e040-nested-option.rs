//! Null is no element of a list and no value of a map, and what is absent is not absent twice.

use apiloom::prelude::*;

#[apiloom::api]
pub struct Part {
    pub names: Vec<Option<String>>,
    pub by_name: BTreeMap<String, Option<i32>>,
    pub maybe: Option<Option<String>>,
    pub deep: Option<Vec<BTreeMap<String, Vec<std::option::Option<String>>>>>,
    pub boxed: Box<Option<String>>,
    /// This one is right.
    pub right: Option<Box<Vec<String>>>,
}

#[apiloom::api]
pub enum Choice {
    One(Vec<Option<String>>),
    Two(Option<String>),
    Three { names: Vec<Option<String>> },
}

#[apiloom::api]
pub struct Hidden(Option<i32>);

fn main() {}
