//! An enum without variants has no value.

use apiloom::prelude::*;

#[apiloom::api]
pub enum Nothing {}

fn main() {}
