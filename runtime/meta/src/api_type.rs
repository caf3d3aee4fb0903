//! The types of `meta/v1` as parts of objects.

use std::collections::BTreeMap;

use apiloom_schema::{ApiType, Hooks};

use crate::protobuf::{self, ProtobufType};
use crate::types;

macro_rules! plain {
    ($($protobuf:expr => $($plain:ty),+;)*) => { $($(
        impl ApiType for $plain {
            const PROTOBUF: Option<ProtobufType> = Some($protobuf);
        }
    )+)* };
}

plain! {
    ProtobufType::IntOrString => types::IntOrString;
    ProtobufType::Text => types::ConditionStatus, types::LabelSelectorOperator;
    ProtobufType::Message(|| &protobuf::JSON_SCHEMA_PROPS) => types::JsonSchemaProps;
    ProtobufType::Message(|| &protobuf::OBJECT_META) => types::ObjectMeta;
    ProtobufType::Message(|| &protobuf::LIST_META) => types::ListMeta;
    ProtobufType::Message(|| &protobuf::OWNER_REFERENCE) => types::OwnerReference;
    ProtobufType::Message(|| &protobuf::MANAGED_FIELDS_ENTRY) => types::ManagedFieldsEntry;
    ProtobufType::Message(|| &protobuf::CONDITION) => types::Condition;
    ProtobufType::Message(|| &protobuf::STATUS) => types::Status;
    ProtobufType::Message(|| &protobuf::LABEL_SELECTOR) => types::LabelSelector;
    ProtobufType::Message(|| &protobuf::LABEL_SELECTOR_REQUIREMENT) => types::LabelSelectorRequirement;
}

impl<K, V: ApiType> ApiType for types::SortedMap<K, V> {
    fn hooks() -> Hooks {
        BTreeMap::<K, V>::hooks()
    }
    const PROTOBUF: Option<ProtobufType> = BTreeMap::<K, V>::PROTOBUF;
}
