//! A member of a union is selected by a value that its tag can have.

#[apiloom::api]
pub enum Strategy {
    Recreate,
    #[api(json = "rolling")]
    RollingUpdate,
}

#[apiloom::api(union(tag = kind))]
pub struct Update {
    pub kind: Option<Strategy>,
    #[api(member = "RollingUpdate")]
    pub rolling: Option<String>,
    #[api(member = ["Recreate", "Recrate"])]
    pub recreate: Option<String>,
}

/// Any text can be the tag here.
#[apiloom::api(union(tag = kind))]
pub struct Free {
    pub kind: String,
    #[api(member = "A")]
    pub a: Option<String>,
}

fn main() {}
