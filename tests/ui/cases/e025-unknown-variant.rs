//! The unknown variant holds the string that was sent.

#[apiloom::api]
pub enum NoString {
    A,
    #[api(unknown)]
    Other,
}

#[apiloom::api]
pub enum Twice {
    #[api(unknown)]
    Other(String),
    #[api(unknown)]
    Another(String),
}

#[apiloom::api]
pub enum WithValues {
    Number(i32),
    #[api(unknown)]
    Other(String),
}

fn main() {}
