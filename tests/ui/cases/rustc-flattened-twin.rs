//! Two fields of one JSON object have two names, also where one is flattened into it.

#[apiloom::api]
pub struct Common {
    pub name: String,
    #[api(flatten)]
    pub more: More,
}

#[apiloom::api]
pub struct More {
    #[api(json = "podIP")]
    pub pod_ip: Option<String>,
}

#[apiloom::api]
pub enum Source {
    HostPath(String),
    Nothing(String),
}

#[apiloom::api]
pub struct Outer {
    pub name: String,
    #[api(flatten)]
    pub common: Common,
}

#[apiloom::api]
pub struct Deep {
    #[api(json = "podIP")]
    pub address: String,
    #[api(flatten)]
    pub common: Option<Common>,
}

#[apiloom::api]
pub struct Twice {
    #[api(flatten)]
    pub common: Common,
    #[api(flatten)]
    pub more: More,
}

#[apiloom::api]
pub struct Chosen {
    pub host_path: String,
    #[api(flatten)]
    pub source: Source,
}

#[apiloom::api]
#[serde(tag = "kind")]
pub enum Tagged {
    First { count: i32 },
}

#[apiloom::api]
pub struct TagIsThere {
    pub kind: String,
    #[api(flatten)]
    pub tagged: Tagged,
}

/// This one is right.
#[apiloom::api]
pub struct Right {
    pub other: String,
    #[api(json = "First")]
    pub first: String,
    #[api(flatten)]
    pub tagged: Tagged,
    #[api(flatten)]
    pub common: Common,
    #[api(flatten)]
    pub source: Source,
}

fn main() {}
