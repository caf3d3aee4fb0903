//! The meta types of the API (`meta/v1`) and the value types that kinds share.

mod clock;
mod condition;
mod fields_v1;
mod int_or_string;
mod json_schema_props;
mod label_selector;
mod object_meta;
pub mod sorted_map;
mod status;

pub use apiloom_schema::types::{
    Duration, DurationRangeError, MicroTime, ParseDurationError, ParseQuantityError,
    ParseTimeError, Quantity, QuantityFormat, Time,
};

pub use clock::{Clock, ManualClock};
pub use condition::{Condition, ConditionStatus, Conditions, StatusCondition};
pub use fields_v1::FieldsV1;
pub use int_or_string::IntOrString;
pub use json_schema_props::JsonSchemaProps;
pub use label_selector::{LabelSelector, LabelSelectorOperator, LabelSelectorRequirement};
pub use object_meta::{ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference};
pub use sorted_map::SortedMap;
pub use status::{Status, StatusCause, StatusDetails};
