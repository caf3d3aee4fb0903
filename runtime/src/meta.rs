//! Objects, kinds, schemas and codecs.

pub use apiloom_meta::ApiError;
pub use apiloom_meta::Clock;
pub use apiloom_meta::Condition;
pub use apiloom_meta::ConditionStatus;
pub use apiloom_meta::Conditions;
pub use apiloom_meta::ConvertError;
pub use apiloom_meta::ConvertFrom;
pub use apiloom_meta::Duration;
pub use apiloom_meta::DurationRangeError;
pub use apiloom_meta::FieldError;
pub use apiloom_meta::FieldErrorKind;
pub use apiloom_meta::FieldPath;
pub use apiloom_meta::FieldsV1;
pub use apiloom_meta::GroupDef;
pub use apiloom_meta::GroupKind;
pub use apiloom_meta::GroupResource;
pub use apiloom_meta::GroupVersion;
pub use apiloom_meta::GroupVersionKind;
pub use apiloom_meta::GroupVersionResource;
pub use apiloom_meta::IntOrString;
pub use apiloom_meta::JsonPath;
pub use apiloom_meta::JsonQuery;
pub use apiloom_meta::LabelSelector;
pub use apiloom_meta::LabelSelectorOperator;
pub use apiloom_meta::LabelSelectorRequirement;
pub use apiloom_meta::ListMeta;
pub use apiloom_meta::ManagedFieldsEntry;
pub use apiloom_meta::ManualClock;
pub use apiloom_meta::MicroTime;
pub use apiloom_meta::Object;
pub use apiloom_meta::ObjectMeta;
pub use apiloom_meta::OwnerReference;
pub use apiloom_meta::ParseDurationError;
pub use apiloom_meta::ParseQuantityError;
pub use apiloom_meta::ParseTimeError;
pub use apiloom_meta::Quantity;
pub use apiloom_meta::QuantityFormat;
pub use apiloom_meta::Resource;
pub use apiloom_meta::ResourceDef;
pub use apiloom_meta::SortedMap;
pub use apiloom_meta::Status;
pub use apiloom_meta::StatusCause;
pub use apiloom_meta::StatusCondition;
pub use apiloom_meta::StatusDetails;
pub use apiloom_meta::StatusReason;
pub use apiloom_meta::Time;

/// From bytes to objects and back.
pub mod codec {
    pub use apiloom_meta::codec::DecodeError;
    pub use apiloom_meta::codec::DecodedDocument;
    pub use apiloom_meta::codec::Decoder;
    pub use apiloom_meta::codec::Encoder;
    pub use apiloom_meta::codec::Format;
    pub use apiloom_meta::codec::Indenter;
}

/// The definition of a kind: what the macros make, and what code makes for a kind of run time.
pub mod kind {
    pub use apiloom_meta::kind::ApiType;
    pub use apiloom_meta::kind::Cell;
    pub use apiloom_meta::kind::CellSource;
    pub use apiloom_meta::kind::CheckFn;
    pub use apiloom_meta::kind::ClusterKind;
    pub use apiloom_meta::kind::Column;
    pub use apiloom_meta::kind::ColumnType;
    pub use apiloom_meta::kind::Conversion;
    pub use apiloom_meta::kind::ConversionMethod;
    pub use apiloom_meta::kind::ConversionReport;
    pub use apiloom_meta::kind::ConversionResult;
    pub use apiloom_meta::kind::ConvertJson;
    pub use apiloom_meta::kind::Converter;
    pub use apiloom_meta::kind::DefaultFn;
    pub use apiloom_meta::kind::DeletionRule;
    pub use apiloom_meta::kind::Dependents;
    pub use apiloom_meta::kind::GenerationRule;
    pub use apiloom_meta::kind::GroupDef;
    pub use apiloom_meta::kind::Hooks;
    pub use apiloom_meta::kind::InMemoryConversion;
    pub use apiloom_meta::kind::JsonConversion;
    pub use apiloom_meta::kind::Lifecycle;
    pub use apiloom_meta::kind::NameFormat;
    pub use apiloom_meta::kind::NamespacedKind;
    pub use apiloom_meta::kind::ObjectDeletion;
    pub use apiloom_meta::kind::Place;
    pub use apiloom_meta::kind::ProtobufField;
    pub use apiloom_meta::kind::ProtobufMessage;
    pub use apiloom_meta::kind::ProtobufPresence;
    pub use apiloom_meta::kind::ProtobufType;
    pub use apiloom_meta::kind::Release;
    pub use apiloom_meta::kind::Resource;
    pub use apiloom_meta::kind::ResourceDef;
    pub use apiloom_meta::kind::SchemaFn;
    pub use apiloom_meta::kind::SchemaSource;
    pub use apiloom_meta::kind::Scope;
    pub use apiloom_meta::kind::SmolStr;
    pub use apiloom_meta::kind::SubresourceDef;
    pub use apiloom_meta::kind::Verb;
    pub use apiloom_meta::kind::Writes;
    pub use apiloom_meta::kind::protobuf;
    pub use apiloom_meta::kind::verbs;
}

/// The rules that Kubernetes has for names.
pub mod names {
    pub use apiloom_meta::names::dns_label;
    pub use apiloom_meta::names::dns_subdomain;
    pub use apiloom_meta::names::dns1035_label;
    pub use apiloom_meta::names::label_key;
    pub use apiloom_meta::names::label_value;
    pub use apiloom_meta::names::path_segment;
    pub use apiloom_meta::names::qualified_name;
    pub use apiloom_meta::names::uuid;
}

/// JSON patch and JSON merge patch.
#[cfg(feature = "server")]
pub mod patch {
    pub use apiloom_meta::patch::Patch;
    pub use apiloom_meta::patch::PatchError;
}

/// Schemas: defaults, validation, OpenAPI and the schema of a CRD.
pub mod schema {
    pub use apiloom_meta::schema::CrdSchema;
    pub use apiloom_meta::schema::Metadata;
    pub use apiloom_meta::schema::Schema;
    pub use apiloom_meta::schema::SchemaErrors;
    pub use apiloom_meta::schema::structural;
}
