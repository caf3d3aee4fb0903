//! An enum without variants has no value.

#[apiloom::api]
pub enum Nothing {}

fn main() {}
