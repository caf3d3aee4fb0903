//! A root has metadata.

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Thing {
    pub spec: String,
}

fn main() {}
