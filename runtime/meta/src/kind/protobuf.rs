//! Protobuf messages of a kind, as data: the numbers, names and types of their fields.
//!
//! The server decodes Protobuf bodies with it, in `http/format/protobuf.rs`. Field numbers are those of Go's `protobuf:`
//! tags and of `generated.proto`.

use self::ProtobufType::{Boolean, Integer, Json, Map, Message, Text, Time};

/// A Protobuf message, and its conversion to a JSON object.
#[derive(Debug)]
pub struct ProtobufMessage {
    /// The name of the message, in error messages.
    pub name: &'static str,
    /// The known fields; others are skipped.
    pub fields: &'static [ProtobufField],
}

/// A field of a message. By default it is omitted from JSON if it is empty: an empty string, list or object, zero, false.
#[derive(Debug)]
pub struct ProtobufField {
    /// The number of the field.
    pub number: u32,
    /// The name of the field, in error messages.
    pub name: &'static str,
    /// The name of the field in JSON.
    pub json: &'static str,
    /// The type of the field, or of its items.
    pub value: ProtobufType,
    /// Whether the field is repeated.
    pub is_list: bool,
    /// When the field is present in JSON.
    pub presence: ProtobufPresence,
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub enum ProtobufType {
    /// `string`.
    Text,
    /// `int32` or `int64`.
    Integer,
    /// `bool`.
    Boolean,
    /// `bytes`, base64 in JSON.
    Bytes,
    /// Go's `metav1.Time`: a message with the seconds since 1970, null in JSON if they are zero.
    Time,
    /// `map<string, string>`.
    Map,
    /// A message with a JSON document in its first field: Go's `FieldsV1` and `RawExtension`. Omitted if it is not valid
    /// JSON.
    Json,
    /// Another message.
    Message(&'static ProtobufMessage),
}

/// When a field is present in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtobufPresence {
    /// If it is not empty: Go's `omitempty`.
    NotEmpty,
    /// If it is not empty, or was sent as zero or false: Go's `omitempty` of a pointer.
    Sent,
    /// Always: a Go field without `omitempty`.
    Always,
}

impl ProtobufField {
    /// A field with the same name in JSON, omitted if it is empty.
    pub const fn new(number: u32, name: &'static str, value: ProtobufType) -> Self {
        Self {
            number,
            name,
            json: name,
            value,
            is_list: false,
            presence: ProtobufPresence::NotEmpty,
        }
    }

    /// Sets the name in JSON.
    #[must_use]
    pub const fn json(self, json: &'static str) -> Self {
        Self { json, ..self }
    }

    /// Makes the field repeated.
    #[must_use]
    pub const fn list(self) -> Self {
        Self {
            is_list: true,
            ..self
        }
    }

    /// Sets [`ProtobufPresence::Sent`].
    #[must_use]
    pub const fn sent(self) -> Self {
        let presence = ProtobufPresence::Sent;
        Self { presence, ..self }
    }

    /// Sets [`ProtobufPresence::Always`].
    #[must_use]
    pub const fn always(self) -> Self {
        let presence = ProtobufPresence::Always;
        Self { presence, ..self }
    }
}

/// `ObjectMeta`, the metadata of every object.
pub static OBJECT_META: ProtobufMessage = ProtobufMessage {
    name: "ObjectMeta",
    fields: &[
        ProtobufField::new(1, "name", Text),
        ProtobufField::new(2, "generate_name", Text).json("generateName"),
        ProtobufField::new(3, "namespace", Text),
        ProtobufField::new(4, "self_link", Text).json("selfLink"),
        ProtobufField::new(5, "uid", Text),
        ProtobufField::new(6, "resource_version", Text).json("resourceVersion"),
        ProtobufField::new(7, "generation", Integer),
        ProtobufField::new(8, "creation_timestamp", Time).json("creationTimestamp"),
        ProtobufField::new(9, "deletion_timestamp", Time).json("deletionTimestamp"),
        ProtobufField::new(10, "deletion_grace_period_seconds", Integer)
            .json("deletionGracePeriodSeconds")
            .sent(),
        ProtobufField::new(11, "labels", Map),
        ProtobufField::new(12, "annotations", Map),
        ProtobufField::new(13, "owner_references", Message(&OWNER_REFERENCE))
            .json("ownerReferences")
            .list(),
        ProtobufField::new(14, "finalizers", Text).list(),
        ProtobufField::new(17, "managed_fields", Message(&MANAGED_FIELDS_ENTRY))
            .json("managedFields")
            .list(),
    ],
};

static OWNER_REFERENCE: ProtobufMessage = ProtobufMessage {
    name: "OwnerReference",
    fields: &[
        ProtobufField::new(1, "kind", Text).always(),
        ProtobufField::new(3, "name", Text).always(),
        ProtobufField::new(4, "uid", Text).always(),
        ProtobufField::new(5, "api_version", Text)
            .json("apiVersion")
            .always(),
        ProtobufField::new(6, "controller", Boolean).sent(),
        ProtobufField::new(7, "block_owner_deletion", Boolean)
            .json("blockOwnerDeletion")
            .sent(),
    ],
};

static MANAGED_FIELDS_ENTRY: ProtobufMessage = ProtobufMessage {
    name: "ManagedFieldsEntry",
    fields: &[
        ProtobufField::new(1, "manager", Text),
        ProtobufField::new(2, "operation", Text),
        ProtobufField::new(3, "api_version", Text).json("apiVersion"),
        ProtobufField::new(4, "time", Time),
        ProtobufField::new(6, "fields_type", Text).json("fieldsType"),
        ProtobufField::new(7, "fields_v1", Json)
            .json("fieldsV1")
            .sent(),
        ProtobufField::new(8, "subresource", Text),
    ],
};

/// `DeleteOptions`, which every resource accepts.
pub static DELETE_OPTIONS: ProtobufMessage = ProtobufMessage {
    name: "DeleteOptions",
    fields: &[
        ProtobufField::new(1, "grace_period_seconds", Integer)
            .json("gracePeriodSeconds")
            .sent(),
        ProtobufField::new(2, "preconditions", Message(&PRECONDITIONS)),
        ProtobufField::new(3, "orphan_dependents", Boolean)
            .json("orphanDependents")
            .sent(),
        ProtobufField::new(4, "propagation_policy", Text).json("propagationPolicy"),
        ProtobufField::new(5, "dry_run", Text).json("dryRun").list(),
    ],
};

static PRECONDITIONS: ProtobufMessage = ProtobufMessage {
    name: "Preconditions",
    fields: &[
        ProtobufField::new(1, "uid", Text),
        ProtobufField::new(2, "resource_version", Text).json("resourceVersion"),
    ],
};
