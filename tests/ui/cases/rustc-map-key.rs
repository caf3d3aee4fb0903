//! Keys of a list map, and of a merged list, are fields of its elements.

#[apiloom::api]
pub struct Part {
    #[api(list = map(nam))]
    pub ports: Vec<Port>,
    #[api(patch(merge, key = nam))]
    pub merged: Vec<Port>,
    #[api(patch(merge))]
    pub single: Port,
}

#[apiloom::api]
pub struct Port {
    pub name: String,
}

fn main() {}
