//! The apiloom command.
fn main() {}
