//! serde and schemars attributes that work against ours are refused.

use apiloom::codegen::{schemars, serde};
use apiloom::prelude::*;

#[apiloom::api]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct Part {
    #[serde(default, rename = "x")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    #[schemars(default)]
    pub third: i32,
}

#[apiloom::api]
#[serde(tag = "type", transparent)]
pub struct Shaped {
    #[serde(alias = "oldName")]
    pub name: String,
    #[serde(skip)]
    pub cache: i32,
    #[serde(skip_serializing)]
    pub secret: String,
    #[serde(skip_deserializing)]
    pub computed: String,
    #[schemars(skip)]
    pub hidden: String,
    #[serde(with = "module")]
    pub odd: String,
    #[serde(serialize_with = "f")]
    pub written: String,
    #[serde(deserialize_with = "f")]
    pub read: String,
}

#[apiloom::api]
#[serde(from = "String", try_from = "String", into = "String", remote = "String")]
pub struct Made {
    pub name: String,
}

#[apiloom::api]
#[serde(rename_all_fields = "camelCase")]
pub enum Mode {
    #[serde(alias = "On")]
    Active,
    #[serde(skip)]
    Internal,
    #[serde(with = "module")]
    Odd { value: i32 },
    #[serde(untagged)]
    Free(String),
    #[serde(other)]
    Other,
    Value(#[serde(with = "module")] String),
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
pub struct Thing {
    pub metadata: ObjectMeta,
    #[serde(alias = "specification")]
    pub spec: Option<String>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema, Resource)]
#[serde(crate = "apiloom::codegen::serde")]
#[schemars(crate = "apiloom::codegen::schemars")]
#[resource(group = "example.com", version = "v1", namespaced)]
pub struct Derived {
    pub metadata: ObjectMeta,
    #[serde(alias = "specification")]
    pub spec: Option<String>,
}

fn main() {}
