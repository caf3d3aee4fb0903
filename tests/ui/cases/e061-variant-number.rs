//! An enum is a string in JSON: numbers of its variants would be lost.

#[apiloom::api]
pub enum Level {
    Low = 1,
    High = 1 + 1,
}

fn main() {}
