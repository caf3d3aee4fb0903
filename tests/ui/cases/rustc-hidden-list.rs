//! An alias that hides a list is found by rustc, not guessed.

pub type Names = Vec<String>;

#[apiloom::api]
pub struct Part {
    pub names: Names,
}

fn main() {}
