//! The messages that Kubernetes defines for all kinds: those of `meta/v1`, with their numbers.

use super::ProtobufType::{
    Boolean, Bytes, FieldsV1, Int32, Int64, List, Map, Message, RawExtension, Text, Time,
};
use super::{ProtobufField as Field, ProtobufMessage, ProtobufType};

const PACKAGE: &str = "k8s.io.apimachinery.pkg.apis.meta.v1";

/// A message of `meta/v1`.
const fn message(name: &'static str, fields: &'static [Field]) -> ProtobufMessage {
    ProtobufMessage {
        package: Some(PACKAGE),
        ..ProtobufMessage::new(name).fields(fields)
    }
}

impl ProtobufType {
    /// The message of a type whose JSON is no object with its fields, such as a time. All fields of these messages have
    /// [`ProtobufPresence::Sent`](super::ProtobufPresence::Sent).
    pub const fn special(self) -> Option<&'static ProtobufMessage> {
        match self {
            Self::Time => Some(&TIME),
            Self::MicroTime => Some(&MICRO_TIME),
            Self::Duration => Some(&DURATION),
            Self::Quantity => Some(&QUANTITY),
            Self::IntOrString => Some(&INT_OR_STRING),
            Self::FieldsV1 => Some(&FIELDS_V1),
            Self::RawExtension => Some(&RAW_EXTENSION),
            Self::Json => Some(&super::json_schema::JSON),
            _ => None,
        }
    }
}

const TEXTS: ProtobufType = List(&Text);

/// `ObjectMeta`, the metadata of every object.
pub static OBJECT_META: ProtobufMessage = message(
    "ObjectMeta",
    &[
        Field::new(1, "name", Text),
        Field::new(2, "generateName", Text),
        Field::new(3, "namespace", Text),
        Field::new(4, "selfLink", Text),
        Field::new(5, "uid", Text),
        Field::new(6, "resourceVersion", Text),
        Field::new(7, "generation", Int64),
        Field::new(8, "creationTimestamp", Time),
        Field::new(9, "deletionTimestamp", Time),
        Field::new(10, "deletionGracePeriodSeconds", Int64).sent(),
        Field::new(11, "labels", Map(&Text)),
        Field::new(12, "annotations", Map(&Text)),
        Field::new(13, "ownerReferences", List(&Message(|| &OWNER_REFERENCE))),
        Field::new(14, "finalizers", TEXTS),
        Field::new(
            17,
            "managedFields",
            List(&Message(|| &MANAGED_FIELDS_ENTRY)),
        ),
    ],
);

/// `OwnerReference`, an owner of an object.
pub static OWNER_REFERENCE: ProtobufMessage = message(
    "OwnerReference",
    &[
        Field::new(1, "kind", Text).always(),
        Field::new(3, "name", Text).always(),
        Field::new(4, "uid", Text).always(),
        Field::new(5, "apiVersion", Text).always(),
        Field::new(6, "controller", Boolean).sent(),
        Field::new(7, "blockOwnerDeletion", Boolean).sent(),
    ],
);

/// `ManagedFieldsEntry`, the fields that one manager has.
pub static MANAGED_FIELDS_ENTRY: ProtobufMessage = message(
    "ManagedFieldsEntry",
    &[
        Field::new(1, "manager", Text),
        Field::new(2, "operation", Text),
        Field::new(3, "apiVersion", Text),
        Field::new(4, "time", Time),
        Field::new(6, "fieldsType", Text),
        Field::new(7, "fieldsV1", FieldsV1).sent(),
        Field::new(8, "subresource", Text),
    ],
);

/// `ListMeta`, the metadata of every list.
pub static LIST_META: ProtobufMessage = message(
    "ListMeta",
    &[
        Field::new(1, "selfLink", Text),
        Field::new(2, "resourceVersion", Text),
        Field::new(3, "continue", Text),
        Field::new(4, "remainingItemCount", Int64).sent(),
    ],
);

/// `PartialObjectMetadata`, an object of which only the metadata is shown.
pub static PARTIAL_OBJECT_METADATA: ProtobufMessage = message(
    "PartialObjectMetadata",
    &[Field::new(1, "metadata", Message(|| &OBJECT_META))],
);

/// `PartialObjectMetadataList`, a list of them.
pub static PARTIAL_OBJECT_METADATA_LIST: ProtobufMessage = message(
    "PartialObjectMetadataList",
    &[
        Field::new(1, "metadata", Message(|| &LIST_META)).always(),
        Field::new(2, "items", List(&Message(|| &PARTIAL_OBJECT_METADATA))).always(),
    ],
);

/// `Status`, the answer without an object.
pub static STATUS: ProtobufMessage = message(
    "Status",
    &[
        Field::new(1, "metadata", Message(|| &LIST_META)).always(),
        Field::new(2, "status", Text),
        Field::new(3, "message", Text),
        Field::new(4, "reason", Text),
        Field::new(5, "details", Message(|| &STATUS_DETAILS)).sent(),
        Field::new(6, "code", Int32),
    ],
);

/// `StatusDetails`, what a `Status` is about.
pub static STATUS_DETAILS: ProtobufMessage = message(
    "StatusDetails",
    &[
        Field::new(1, "name", Text),
        Field::new(2, "group", Text),
        Field::new(3, "kind", Text),
        Field::new(4, "causes", List(&Message(|| &STATUS_CAUSE))),
        Field::new(5, "retryAfterSeconds", Int32),
        Field::new(6, "uid", Text),
    ],
);

/// `StatusCause`, one reason of a `Status`.
pub static STATUS_CAUSE: ProtobufMessage = message(
    "StatusCause",
    &[
        Field::new(1, "reason", Text),
        Field::new(2, "message", Text),
        Field::new(3, "field", Text),
    ],
);

/// `WatchEvent`, a change in a watch. The object is a complete Protobuf body, with its prefix.
pub static WATCH_EVENT: ProtobufMessage = message(
    "WatchEvent",
    &[
        Field::new(1, "type", Text).always(),
        Field::new(2, "object", RawExtension).always(),
    ],
);

/// `DeleteOptions`, which every resource accepts.
pub static DELETE_OPTIONS: ProtobufMessage = message(
    "DeleteOptions",
    &[
        Field::new(1, "gracePeriodSeconds", Int64).sent(),
        Field::new(2, "preconditions", Message(|| &PRECONDITIONS)),
        Field::new(3, "orphanDependents", Boolean).sent(),
        Field::new(4, "propagationPolicy", Text),
        Field::new(5, "dryRun", TEXTS),
        Field::new(
            6,
            "ignoreStoreReadErrorWithClusterBreakingPotential",
            Boolean,
        )
        .sent(),
    ],
);

/// `Preconditions` of a deletion.
pub static PRECONDITIONS: ProtobufMessage = message(
    "Preconditions",
    &[
        Field::new(1, "uid", Text),
        Field::new(2, "resourceVersion", Text),
    ],
);

/// `CreateOptions`, the options of a create.
pub static CREATE_OPTIONS: ProtobufMessage = message(
    "CreateOptions",
    &[
        Field::new(1, "dryRun", TEXTS),
        Field::new(3, "fieldManager", Text),
        Field::new(4, "fieldValidation", Text),
    ],
);

/// `UpdateOptions`, the options of an update.
pub static UPDATE_OPTIONS: ProtobufMessage = message(
    "UpdateOptions",
    &[
        Field::new(1, "dryRun", TEXTS),
        Field::new(2, "fieldManager", Text),
        Field::new(3, "fieldValidation", Text),
    ],
);

/// `PatchOptions`, the options of a patch.
pub static PATCH_OPTIONS: ProtobufMessage = message(
    "PatchOptions",
    &[
        Field::new(1, "dryRun", TEXTS),
        Field::new(2, "force", Boolean).sent(),
        Field::new(3, "fieldManager", Text),
        Field::new(4, "fieldValidation", Text),
    ],
);

/// `GetOptions`, the options of a get.
pub static GET_OPTIONS: ProtobufMessage =
    message("GetOptions", &[Field::new(1, "resourceVersion", Text)]);

/// `ListOptions`, the options of a list or a watch.
pub static LIST_OPTIONS: ProtobufMessage = message(
    "ListOptions",
    &[
        Field::new(1, "labelSelector", Text),
        Field::new(2, "fieldSelector", Text),
        Field::new(3, "watch", Boolean),
        Field::new(4, "resourceVersion", Text),
        Field::new(5, "timeoutSeconds", Int64).sent(),
        Field::new(7, "limit", Int64),
        Field::new(8, "continue", Text),
        Field::new(9, "allowWatchBookmarks", Boolean),
        Field::new(10, "resourceVersionMatch", Text),
        Field::new(11, "sendInitialEvents", Boolean).sent(),
    ],
);

/// `LabelSelector`, a selector as a part of objects.
pub static LABEL_SELECTOR: ProtobufMessage = message(
    "LabelSelector",
    &[
        Field::new(1, "matchLabels", Map(&Text)),
        Field::new(
            2,
            "matchExpressions",
            List(&Message(|| &LABEL_SELECTOR_REQUIREMENT)),
        ),
    ],
);

/// `LabelSelectorRequirement`, one requirement of a `LabelSelector`.
pub static LABEL_SELECTOR_REQUIREMENT: ProtobufMessage = message(
    "LabelSelectorRequirement",
    &[
        Field::new(1, "key", Text).always(),
        Field::new(2, "operator", Text).always(),
        Field::new(3, "values", TEXTS),
    ],
);

/// `Condition`, an observation of an object's state.
pub static CONDITION: ProtobufMessage = message(
    "Condition",
    &[
        Field::new(1, "type", Text).always(),
        Field::new(2, "status", Text).always(),
        Field::new(3, "observedGeneration", Int64),
        Field::new(4, "lastTransitionTime", Time).always(),
        Field::new(5, "reason", Text).always(),
        Field::new(6, "message", Text).always(),
    ],
);

/// `Time`.
pub static TIME: ProtobufMessage = message(
    "Time",
    &[
        Field::new(1, "seconds", Int64).sent(),
        Field::new(2, "nanos", Int32).sent(),
    ],
);

/// `MicroTime`.
pub static MICRO_TIME: ProtobufMessage = ProtobufMessage {
    name: "MicroTime",
    ..message("Time", TIME.fields)
};

/// `Duration`, in nanoseconds.
pub static DURATION: ProtobufMessage =
    message("Duration", &[Field::new(1, "duration", Int64).sent()]);

/// `Quantity`, as text.
pub static QUANTITY: ProtobufMessage = ProtobufMessage {
    package: Some("k8s.io.apimachinery.pkg.api.resource"),
    ..message("Quantity", &[Field::new(1, "string", Text).sent()])
};

/// `IntOrString`: the type is 0 for a number and 1 for text.
pub static INT_OR_STRING: ProtobufMessage = ProtobufMessage {
    package: Some("k8s.io.apimachinery.pkg.util.intstr"),
    ..message(
        "IntOrString",
        &[
            Field::new(1, "type", Int64).sent(),
            Field::new(2, "intVal", Int32).sent(),
            Field::new(3, "strVal", Text).sent(),
        ],
    )
};

/// `FieldsV1`, a JSON document.
pub static FIELDS_V1: ProtobufMessage = message("FieldsV1", &[Field::new(1, "Raw", Bytes).sent()]);

/// `RawExtension`, a JSON document.
pub static RAW_EXTENSION: ProtobufMessage = ProtobufMessage {
    package: Some("k8s.io.apimachinery.pkg.runtime"),
    ..message("RawExtension", &[Field::new(1, "raw", Bytes).sent()])
};
