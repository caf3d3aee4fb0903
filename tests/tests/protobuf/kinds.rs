//! A kind with fields of every type that has a form in Protobuf.

use std::collections::BTreeMap;

use apiloom::prelude::*;
use serde_json::Value;

#[apiloom::resource(group = "ex.io", version = "v1", kind = "Widget", namespaced)]
pub struct WidgetType {
    pub metadata: ObjectMeta,
    #[api(proto = 2)]
    pub spec: Spec,
    #[api(proto = 4)]
    pub status: Option<Status>,
}

#[apiloom::api(proto(reserved = [3, 5], reserved_names = ["old"]))]
pub struct Spec {
    #[api(proto = 1)]
    pub text: Option<String>,
    #[api(proto(number = 2, omit_empty))]
    pub omitted: Option<String>,
    #[api(proto = 4)]
    pub required: String,
    #[api(proto = 6, default = 3)]
    pub defaulted: i32,
    #[api(proto = 7)]
    pub numbers: Numbers,
    #[api(proto = 8)]
    pub list: Vec<Item>,
    #[api(proto = 9)]
    pub map: BTreeMap<String, Vec<Quantity>>,
    #[api(proto = 10)]
    pub data: Vec<u8>,
    #[api(proto = 11)]
    pub more: BTreeMap<String, Vec<u8>>,
    #[api(proto = 12)]
    pub any: Option<Value>,
    #[api(proto = 13)]
    pub word: Option<Word>,
    #[api(proto = 14)]
    pub choice: Option<Choice>,
    #[api(proto = 15)]
    pub times: Vec<Time>,
    #[api(proto = 16, json = "atMicro")]
    pub micro: Option<MicroTime>,
    #[api(proto = 17)]
    pub port: Option<IntOrString>,
    #[api(proto = 18)]
    pub timeout: Option<Duration>,
    #[api(proto = 19)]
    pub selector: Option<LabelSelector>,
    #[api(proto = 20, json = "matrix-of-data")]
    pub matrix: Vec<Vec<i32>>,
    #[api(proto = 536_870_911)]
    pub wrapped: Option<Wrapped>,
}

#[apiloom::api]
pub struct Numbers {
    #[api(proto = 1)]
    pub a: i64,
    #[api(proto = 2)]
    pub b: u32,
    #[api(proto = 3)]
    pub c: u64,
    #[api(proto = 4)]
    pub d: f32,
    #[api(proto = 5)]
    pub e: f64,
    #[api(proto = 6)]
    pub f: u16,
    #[api(proto = 7)]
    pub g: Option<bool>,
}

/// An item may contain others.
#[apiloom::api(proto(name = "WidgetItem"))]
pub struct Item {
    #[api(proto = 1)]
    pub name: String,
    #[api(proto = 2, preserve_unknown)]
    pub items: Vec<Self>,
}

#[apiloom::api]
pub struct Wrapped(BTreeMap<String, Item>);

#[apiloom::api]
pub enum Word {
    A,
    #[api(unknown)]
    Other(String),
}

#[apiloom::api]
pub enum Choice {
    #[api(proto = 1)]
    One(Item),
    #[api(proto = 3)]
    Two {
        #[api(proto = 1)]
        size: i32,
    },
    #[api(proto = 2)]
    None {},
}

/// A type without fields is a message.
#[apiloom::api]
pub struct Status {}
