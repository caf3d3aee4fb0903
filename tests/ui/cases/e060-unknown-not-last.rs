//! The `unknown` variant comes last: it takes what the others do not know.

// Issue 10, point 12.
#[apiloom::api]
pub enum Protocol {
    Tcp,
    #[api(unknown)]
    Unknown(String),
    Udp,
}

fn main() {}
