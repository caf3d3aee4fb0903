//! The Protobuf form of types, as their numbers describe it.

use apiloom::meta::kind::{ApiType, ProtobufMessage, ProtobufType};
use apiloom::prelude::*;

#[path = "../protobuf/kinds.rs"]
mod kinds;

use kinds::{Choice, Item, Numbers, Spec, Status, WidgetType};

#[apiloom::resource(group = "ex.io", version = "v1", namespaced)]
pub struct Plain {
    pub metadata: ObjectMeta,
    pub spec: Spec,
}

/// Its JSON is text, which its type does not tell.
#[apiloom::api]
pub struct Hex(
    #[serde(with = "hex")]
    #[schemars(with = "String")]
    u32,
);

mod hex {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(value: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{value:x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        let text = String::deserialize(deserializer)?;
        u32::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
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
            "8 list [WidgetItem] NotEmpty",
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
            "20 matrix-of-data [[Int32]] NotEmpty",
            "536870911 wrapped {WidgetItem} Sent",
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
fn a_type_whose_json_serde_makes_has_no_form() {
    assert!(Hex::PROTOBUF.is_none());
    assert!(matches!(
        kinds::Wrapped::PROTOBUF,
        Some(ProtobufType::Map(_))
    ));
}

#[test]
fn a_message_may_contain_itself() {
    let item = message_of::<Item>();
    assert_eq!(
        fields(item),
        ["1 name Text Always", "2 items [WidgetItem] NotEmpty"]
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
            "1 one WidgetItem Sent",
            "3 two ChoiceTwo Sent",
            "2 none ChoiceNone Sent"
        ]
    );
    assert_eq!(message_of::<Status>().fields.len(), 0);
}
