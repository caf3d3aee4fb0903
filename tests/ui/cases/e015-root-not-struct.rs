//! A root is a struct.

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub enum Thing {
    A,
}

fn main() {}
