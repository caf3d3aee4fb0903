//! An enum is a string in JSON: numbers of its variants would be lost.

// Issue 10, point 12.
#[apiloom::api]
pub enum Level {
    Low = 1,
    High = 1 + 1,
}

fn main() {}
