//! Keys of a list map are fields of its elements.

#[apiloom::api]
pub struct Part {
    #[api(list = map(nam))]
    pub ports: Vec<Port>,
}

#[apiloom::api]
pub struct Port {
    pub name: String,
}

fn main() {}
