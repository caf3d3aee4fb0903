//! Siblings are named by their Rust names.

#[apiloom::api(union(tag = tpye))]
pub struct Part {
    pub r#type: Option<String>,
    #[api(member = "Name", requires(passwrd), conflicts(nobody))]
    pub name: Option<String>,
    pub password: Option<String>,
}

fn main() {}
