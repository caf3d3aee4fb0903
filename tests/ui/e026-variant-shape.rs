//! JSON objects have named fields.

use apiloom::prelude::*;

#[apiloom::api]
pub enum Choice {
    Pair(i32, i32),
}

fn main() {}
