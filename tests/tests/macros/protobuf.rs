//! The Protobuf form of types, as their numbers describe it.

use std::collections::BTreeMap;

use apiloom::meta::kind::{ApiType, ProtobufMessage, ProtobufType};
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
#[apiloom::api]
pub struct Item {
    #[api(proto = 1)]
    pub name: String,
    #[api(proto = 2)]
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

#[apiloom::resource(group = "ex.io", version = "v1", namespaced)]
pub struct Plain {
    pub metadata: ObjectMeta,
    pub spec: Spec,
}

fn type_text(of: ProtobufType) -> String {
    match of {
        ProtobufType::Message(message) => message().name.to_owned(),
        ProtobufType::List(of) => format!("[{}]", type_text(*of)),
        ProtobufType::Map(of) => format!("{{{}}}", type_text(*of)),
        other => format!("{other:?}"),
    }
}

fn fields(message: &ProtobufMessage) -> Vec<String> {
    let line = |field: &apiloom::meta::kind::ProtobufField| {
        let (number, name) = (field.number, field.name);
        format!(
            "{number} {name} {} {:?}",
            type_text(field.value),
            field.presence
        )
    };
    message.fields.iter().map(line).collect()
}

fn message_of<T: ApiType>() -> &'static ProtobufMessage {
    match T::PROTOBUF {
        Some(ProtobufType::Message(message)) => message(),
        other => panic!("no message: {other:?}"),
    }
}

#[test]
fn a_kind_with_numbers_has_a_message_of_its_name() {
    let def = WidgetType::definition();
    let message = def.protobuf.unwrap();
    assert_eq!((message.name, message.package), ("Widget", None));
    assert_eq!(
        fields(message),
        [
            "1 metadata ObjectMeta Always",
            "2 spec Spec Always",
            "4 status Status Sent"
        ]
    );
    assert!(Plain::definition().protobuf.is_none());
    assert!(Plain::PROTOBUF.is_none());
}

#[test]
fn fields_have_the_numbers_types_and_presence_that_are_declared() {
    let spec = message_of::<Spec>();
    assert_eq!(spec.reserved, [3, 5]);
    assert_eq!(spec.reserved_names, ["old"]);
    assert_eq!(
        fields(spec),
        [
            "1 text Text Sent",
            "2 omitted Text NotEmpty",
            "4 required Text Always",
            "6 defaulted Int32 Sent",
            "7 numbers Numbers Always",
            "8 list [Item] NotEmpty",
            "9 map {[Quantity]} NotEmpty",
            "10 data Bytes NotEmpty",
            "11 more {Bytes} NotEmpty",
            "12 any RawExtension Sent",
            "13 word Text Sent",
            "14 choice Choice Sent",
            "15 times [Time] NotEmpty",
            "16 atMicro MicroTime Sent",
            "17 port IntOrString Sent",
            "18 timeout Duration Sent",
            "19 selector LabelSelector Sent",
            "536870911 wrapped {Item} Sent",
        ]
    );
    assert_eq!(
        fields(message_of::<Numbers>()),
        [
            "1 a Int64 Always",
            "2 b Uint32 Always",
            "3 c Uint64 Always",
            "4 d Float Always",
            "5 e Double Always",
            "6 f Int32 Always",
            "7 g Boolean Sent",
        ]
    );
}

#[test]
fn a_message_may_contain_itself() {
    let item = message_of::<Item>();
    assert_eq!(
        fields(item),
        ["1 name Text Always", "2 items [Item] NotEmpty"]
    );
    let ProtobufType::List(ProtobufType::Message(inner)) = item.fields[1].value else {
        panic!("{:?}", item.fields[1].value);
    };
    assert!(std::ptr::eq(inner(), item));
}

#[test]
fn an_enum_of_objects_is_a_message_with_a_field_for_each() {
    assert_eq!(
        fields(message_of::<Choice>()),
        [
            "1 one Item Sent",
            "3 two ChoiceTwo Sent",
            "2 none ChoiceNone Sent"
        ]
    );
    assert_eq!(message_of::<Status>().fields.len(), 0);
}
