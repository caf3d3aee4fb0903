//! An empty list cannot be told from an absent one.

fn names(_: &Part) -> Vec<String> {
    Vec::new()
}

#[apiloom::api]
pub struct Part {
    #[api(default_with = names)]
    pub names: Vec<String>,
}

#[apiloom::api]
pub enum Choice {
    First {
        #[api(default_with = name)]
        name: Option<String>,
    },
}

fn main() {}
