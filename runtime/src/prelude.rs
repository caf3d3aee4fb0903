//! The names that nearly every file with API types needs: `use apiloom::prelude::*`.

#[doc(no_inline)]
pub use std::collections::BTreeMap;

#[doc(no_inline)]
pub use apiloom_meta::{
    Condition, ConditionStatus, ConvertError, ConvertFrom, Duration, FieldError, FieldPath,
    IntOrString, LabelSelector, MicroTime, ObjectMeta, OwnerReference, Quantity, Resource, Time,
};

#[doc(no_inline)]
pub use apiloom_macros::{Resource, api, resource};

#[cfg(feature = "server")]
#[doc(no_inline)]
pub use crate::server::{
    Admission, AdmissionRequest, Builder, Lister, Operation, RequestContext, Strategy, async_trait,
};
#[doc(no_inline)]
pub use apiloom_meta::ApiError;
