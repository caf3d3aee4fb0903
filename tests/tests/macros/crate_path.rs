//! Expansions with another path than `::apiloom`.

use apiloom::meta::{ConvertFrom as _, ObjectMeta, Resource};
use serde_json::json;

/// A path that users may set: a module with the module `codegen` inside.
mod base {
    pub(super) use apiloom_meta::codegen;
}

mod v1 {
    use super::base;

    #[apiloom::resource(group = "example.com", version = "v1", cluster, crate = base, spoke_of = super::v2::Crate)]
    #[derive(Default)]
    pub struct Crate {
        pub metadata: apiloom::meta::ObjectMeta,
        pub content: Option<Vec<u8>>,
    }
}

mod v2 {
    apiloom::group! { name = "example.com", versions = [v2, v1], crate = super::base }

    #[apiloom::resource(group = "example.com", version = "v2", cluster, crate = super::base, storage)]
    #[derive(Default)]
    pub struct Crate {
        pub metadata: apiloom::meta::ObjectMeta,
        pub content: Option<Vec<u8>>,
    }
}

#[apiloom::api(crate = base)]
#[derive(Default)]
pub struct Part {
    #[api(range = 1..=3)]
    pub number: i32,
    pub size: Size,
    pub lists: Vec<Names>,
}

#[apiloom::api(crate = base)]
#[derive(Default)]
pub enum Size {
    #[default]
    Small,
    Named(Names),
}

#[apiloom::api(crate = base, items = ..=2)]
#[derive(Default)]
pub struct Names(pub Vec<String>);

#[derive(
    Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema, apiloom::Resource,
)]
#[resource(group = "example.com", version = "v1", cluster, crate = base)]
pub struct Derived {
    pub metadata: ObjectMeta,
}

#[test]
fn types_with_another_path_are_the_same() {
    assert_eq!(v2::GROUP.versions[..], ["v2", "v1"]);
    assert_eq!(v1::Crate::definition().plural, "crates");
    assert_eq!(Derived::definition().plural, "deriveds");
    let old = v1::Crate {
        content: Some(b"hi".to_vec()),
        ..Default::default()
    };
    let new = v2::Crate::convert_from(old).unwrap();
    assert_eq!(serde_json::to_value(&new).unwrap()["content"], "aGk=");
    let part = Part {
        number: 1,
        size: Size::Named(Names(vec!["a".to_owned()])),
        lists: Vec::new(),
    };
    assert_eq!(
        serde_json::to_value(part).unwrap(),
        json!({"number": 1, "size": {"named": ["a"]}})
    );
}

#[test]
fn types_inside_a_function_have_the_key_too() {
    #[apiloom::api(crate = base)]
    struct Local {
        names: Vec<String>,
    }
    let local = Local { names: Vec::new() };
    assert_eq!(serde_json::to_value(local).unwrap(), json!({}));
}
