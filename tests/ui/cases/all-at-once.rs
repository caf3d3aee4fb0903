//! Errors of all attributes, of all fields and of all types are told in one build, and none that follows from another.

use apiloom::prelude::*;

mod group {
    apiloom::group! { nmae = "example.com", versions = [1], release = 1.2 }
}

#[apiloom::api(bananas, title = 3)]
#[apiloom::resource(gruop = "example.com", version = , namespced, statuss)]
#[apiloom::api(oranges)]
pub struct Thing {
    pub metadata: ObjectMeta,
    #[api(mni = 3, max = "x" min = 7)]
    #[api(requires(type, match, spce))]
    pub count: Option<i32>,
    #[serde(rename = "x")]
    #[api(formt = uuid)]
    pub part: Part,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
#[resource(printcolumn(nmae = "x", pth = part.name), verbs(olny = [get]))]
pub struct Second {
    pub metadata: ObjectMeta,
    pub part: Part,
}

#[apiloom::resource(group = "example.com", version = "v1", cluster)]
#[apiloom::api(bananas)]
pub enum Third {
    #[api(bananas)]
    #[api(oranges)]
    A,
}

#[apiloom::api(unoin(tag = kind))]
#[derive(Default)]
pub struct Part {
    #[api(member = "A")]
    pub name: Option<String>,
    #[api(convert(dorp, default = 3))]
    pub other: i32,
}

#[apiloom::api(bananas)]
pub struct Pair(#[api(bananas)] String, #[api(oranges)] Vec<Option<String>>);

#[apiloom::api(bananas)]
pub enum Mode {
    A(#[api(min = 3)] String),
    #[api(bananas, json = 3)]
    B(#[api(oranges)] String, #[api(oranges)] String),
}

mod v1 {
    #[apiloom::api]
    pub struct Inner {
        pub name: String,
    }
    #[apiloom::api]
    pub struct Outer {
        pub inner: Inner,
    }
}

#[apiloom::api(convert(peer = v1::Inner), bananas)]
pub struct Inner {
    pub name: String,
}

// What uses them has no errors.
#[apiloom::api(convert(peer = v1::Outer))]
pub struct Outer {
    pub inner: Inner,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, printcolumn(name = "Name", path = part.name))]
pub struct Whole {
    pub metadata: ObjectMeta,
    pub part: Part,
    pub modes: Vec<Mode>,
    pub second: Option<Box<Second>>,
}

fn use_them(whole: &Whole) -> (Part, Part, Result<String, apiloom::codegen::serde_json::Error>) {
    assert_eq!(group::GROUP.name, <Thing as apiloom::codegen::Resource>::GROUP);
    (whole.part.clone(), Part::default(), apiloom::codegen::serde_json::to_string(whole))
}

fn main() {}
