//! Null is a value of an option alone; serde would refuse what the schema allows.

#[apiloom::api]
pub struct Part {
    #[api(nullable)]
    pub name: String,
    #[api(nullable)]
    pub names: Vec<String>,
}

fn main() {}
