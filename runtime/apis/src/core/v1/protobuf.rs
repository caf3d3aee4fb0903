//! The Protobuf forms of the kinds of core/v1.

use apiloom_meta::kind::ProtobufType::{Message, Text, Time};
use apiloom_meta::kind::protobuf::OBJECT_META;
use apiloom_meta::kind::{ProtobufField, ProtobufMessage};

pub(super) static NAMESPACE: ProtobufMessage = ProtobufMessage {
    name: "Namespace",
    fields: &[
        ProtobufField::new(1, "metadata", Message(&OBJECT_META)),
        ProtobufField::new(2, "spec", Message(&NAMESPACE_SPEC)),
        ProtobufField::new(3, "status", Message(&NAMESPACE_STATUS)),
    ],
};

static NAMESPACE_SPEC: ProtobufMessage = ProtobufMessage {
    name: "NamespaceSpec",
    fields: &[ProtobufField::new(1, "finalizers", Text).list()],
};

static NAMESPACE_STATUS: ProtobufMessage = ProtobufMessage {
    name: "NamespaceStatus",
    fields: &[
        ProtobufField::new(1, "phase", Text),
        ProtobufField::new(2, "conditions", Message(&NAMESPACE_CONDITION)).list(),
    ],
};

static NAMESPACE_CONDITION: ProtobufMessage = ProtobufMessage {
    name: "NamespaceCondition",
    fields: &[
        ProtobufField::new(1, "condition_type", Text).json("type"),
        ProtobufField::new(2, "status", Text),
        ProtobufField::new(4, "last_transition_time", Time).json("lastTransitionTime"),
        ProtobufField::new(5, "reason", Text),
        ProtobufField::new(6, "message", Text),
    ],
};
