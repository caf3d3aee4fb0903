//! The Protobuf forms of the kinds of core/v1.

use apiloom_meta::kind::ProtobufType::{List, Message, Text, Time};
use apiloom_meta::kind::protobuf::OBJECT_META;
use apiloom_meta::kind::{ProtobufField, ProtobufMessage};

pub(super) static NAMESPACE: ProtobufMessage = ProtobufMessage::new("Namespace").fields(&[
    ProtobufField::new(1, "metadata", Message(|| &OBJECT_META)),
    ProtobufField::new(2, "spec", Message(|| &NAMESPACE_SPEC)),
    ProtobufField::new(3, "status", Message(|| &NAMESPACE_STATUS)),
]);

static NAMESPACE_SPEC: ProtobufMessage = ProtobufMessage::new("NamespaceSpec")
    .fields(&[ProtobufField::new(1, "finalizers", List(&Text))]);

static NAMESPACE_STATUS: ProtobufMessage = ProtobufMessage::new("NamespaceStatus").fields(&[
    ProtobufField::new(1, "phase", Text),
    ProtobufField::new(2, "conditions", List(&Message(|| &NAMESPACE_CONDITION))),
]);

static NAMESPACE_CONDITION: ProtobufMessage = ProtobufMessage::new("NamespaceCondition").fields(&[
    ProtobufField::new(1, "type", Text),
    ProtobufField::new(2, "status", Text),
    ProtobufField::new(4, "lastTransitionTime", Time),
    ProtobufField::new(5, "reason", Text),
    ProtobufField::new(6, "message", Text),
]);
