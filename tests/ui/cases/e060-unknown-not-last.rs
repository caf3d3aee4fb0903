//! The `unknown` variant comes last: it takes what the others do not know.

#[apiloom::api]
pub enum Protocol {
    Tcp,
    #[api(unknown)]
    Unknown(String),
    Udp,
}

fn main() {}
