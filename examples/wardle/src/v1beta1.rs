//! The hub: a reference to a Flunder and one to a Fischer each have a field of their own.

use apiloom::prelude::*;

/// Flunder is an example of a namespaced kind.
#[apiloom::resource(group = "wardle.example.com", version = "v1beta1", namespaced, hub, status, shortname = "fl",
    printcolumn(name = "Type", path = spec.reference_type), printcolumn(name = "Reference", with = Flunder::reference),
    selectable(spec.reference_type))]
pub struct Flunder {
    pub metadata: ObjectMeta,
    /// What the Flunder refers to.
    #[api(proto = 2)]
    pub spec: Option<FlunderSpec>,
    #[api(proto = 3)]
    pub status: Option<FlunderStatus>,
}

impl Flunder {
    fn reference(&self) -> Option<String> {
        let spec = self.spec.clone()?;
        spec.flunder_reference.or(spec.fischer_reference)
    }
}

/// FlunderSpec names at most one other object.
#[apiloom::api(union(tag = reference_type, allow_none))]
pub struct FlunderSpec {
    /// Name of another Flunder.
    #[api(proto(number = 1, omit_empty), member = "Flunder")]
    pub flunder_reference: Option<String>,
    /// Name of a Fischer.
    #[api(proto(number = 2, omit_empty), member = "Fischer")]
    pub fischer_reference: Option<String>,
    /// Which of the two is set.
    #[api(proto(number = 3, omit_empty))]
    pub reference_type: Option<ReferenceType>,
}

/// ReferenceType is the kind of object that a Flunder refers to.
#[apiloom::api]
pub enum ReferenceType {
    Flunder,
    Fischer,
    /// Any other value; the union refuses it.
    #[api(unknown)]
    Unknown(String),
}

/// FlunderStatus is empty.
#[apiloom::api]
pub struct FlunderStatus {}
