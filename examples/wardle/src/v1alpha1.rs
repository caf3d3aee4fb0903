//! The stored version: one reference, and a type that says to what. Fischer lives in this version only.

use apiloom::prelude::*;

use crate::v1beta1::{self, FlunderStatus, ReferenceType};

/// Flunder is an example of a namespaced kind.
#[apiloom::resource(group = "wardle.example.com", version = "v1alpha1", namespaced, storage, spoke_of = v1beta1::Flunder, status,
    shortname = "fl", lifecycle(introduced = "1.0", deprecated = "1.3", removed = "1.10"),
    printcolumn(name = "Type", path = spec.reference_type), printcolumn(name = "Reference", path = spec.reference),
    selectable(spec.reference_type))]
pub struct Flunder {
    pub metadata: ObjectMeta,
    /// What the Flunder refers to.
    #[api(proto = 2)]
    pub spec: Option<FlunderSpec>,
    #[api(proto = 3)]
    pub status: Option<FlunderStatus>,
}

/// FlunderSpec names another object.
#[apiloom::api(union(tag = reference_type, allow_none))]
pub struct FlunderSpec {
    /// Name of another Flunder or of a Fischer.
    #[api(proto(number = 1, omit_empty), member = ["Flunder", "Fischer"])]
    pub reference: Option<String>,
    /// Of which kind the other object is; Flunder when only the reference is given.
    #[api(proto = 2, default_with = FlunderSpec::default_type)]
    pub reference_type: Option<ReferenceType>,
}

impl FlunderSpec {
    fn default_type(&self) -> Option<ReferenceType> {
        self.reference.as_ref().map(|_| ReferenceType::Flunder)
    }
}

impl ConvertFrom<FlunderSpec> for v1beta1::FlunderSpec {
    fn convert_from(spec: FlunderSpec) -> Result<Self, ConvertError> {
        let (flunder_reference, fischer_reference) = match spec.reference_type {
            Some(ReferenceType::Flunder) => (spec.reference, None),
            Some(ReferenceType::Fischer) => (None, spec.reference),
            _ => (None, None),
        };
        Ok(Self {
            flunder_reference,
            fischer_reference,
            reference_type: spec.reference_type,
        })
    }
}

impl ConvertFrom<v1beta1::FlunderSpec> for FlunderSpec {
    fn convert_from(hub: v1beta1::FlunderSpec) -> Result<Self, ConvertError> {
        Ok(Self {
            reference: hub.flunder_reference.or(hub.fischer_reference),
            reference_type: hub.reference_type,
        })
    }
}

/// Fischer lists names that no Flunder may have.
#[apiloom::resource(group = "wardle.example.com", version = "v1alpha1", cluster, storage)]
#[resource(lifecycle(introduced = "1.0", deprecated = "1.3", removed = "1.10"))]
pub struct Fischer {
    pub metadata: ObjectMeta,
    /// Names that a Flunder may not be created with.
    #[api(proto = 2, list = atomic)]
    pub disallowed_flunders: Vec<String>,
}
