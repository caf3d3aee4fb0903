//! Signatures of the user's functions are rustc's to check.

fn check(_: &String) -> bool {
    true
}

#[apiloom::api]
pub struct Part {
    #[api(custom = check)]
    pub name: String,
}

fn main() {}
