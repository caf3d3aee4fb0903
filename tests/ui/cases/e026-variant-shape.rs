//! JSON objects have named fields.

#[apiloom::api]
pub enum Choice {
    Pair(i32, i32),
}

fn main() {}
