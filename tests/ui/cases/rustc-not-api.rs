//! Fields whose types lack `#[apiloom::api]`.

use std::collections::BTreeMap;

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Thing {
    pub metadata: ObjectMeta,
    pub spec: ThingSpec,
    pub parts: Vec<parts::Part>,
}

pub struct ThingSpec {
    pub mode: Mode,
}

pub enum Mode {
    Fast,
}

#[apiloom::api]
pub enum Choice {
    Map(BTreeMap<String, Alias>),
    Parts { parts: Option<Box<parts::Part>> },
}

#[apiloom::api]
pub struct Name(parts::Setting);

type Alias = parts::Setting;

pub mod parts {
    #[derive(Clone, Debug, PartialEq, apiloom::codegen::serde::Serialize, apiloom::codegen::serde::Deserialize)]
    #[serde(crate = "apiloom::codegen::serde", rename_all = "camelCase")]
    pub struct Part {
        pub name: String,
    }

    #[derive(Default)]
    pub struct Setting(pub String);
}

fn main() {}
