//! The two kinds and two versions of wardle, as short as possible.

use apiloom::prelude::*;

apiloom::group! { name = "wardle.example.com", versions = [v1beta1, v1alpha1], release = "1.2" }

pub mod v1beta1 {
    use super::*;

    /// Flunder is an example namespaced object.
    #[apiloom::resource(group = "wardle.example.com", version = "v1beta1", namespaced, hub, status, shortname = "fl",
        printcolumn(name = "Type", path = spec.reference_type), printcolumn(name = "Reference", with = Flunder::reference),
        printcolumn(name = "Age", path = metadata.creation_timestamp), selectable(spec.reference_type))]
    pub struct Flunder {
        pub metadata: ObjectMeta,
        pub spec: FlunderSpec,
        pub status: Option<FlunderStatus>,
    }

    #[apiloom::api(union(tag = reference_type, allow_none))]
    pub struct FlunderSpec {
        /// Name of another Flunder.
        #[api(member = "Flunder")]
        pub flunder_reference: Option<String>,
        /// Name of a Fischer.
        #[api(member = "Fischer")]
        pub fischer_reference: Option<String>,
        pub reference_type: Option<ReferenceType>,
    }

    impl Flunder {
        fn reference(&self) -> Option<String> {
            self.spec
                .flunder_reference
                .clone()
                .or_else(|| self.spec.fischer_reference.clone())
        }
    }

    #[apiloom::api(custom = ReferenceType::check)]
    pub enum ReferenceType {
        Flunder,
        Fischer,
        #[api(unknown)]
        Unknown(String),
    }

    impl ReferenceType {
        fn check(&self, path: &FieldPath) -> Option<FieldError> {
            let Self::Unknown(other) = self else {
                return None;
            };
            Some(FieldError::invalid(
                path,
                other,
                "must be Flunder or Fischer",
            ))
        }
    }

    #[apiloom::api]
    pub struct FlunderStatus {}
}

pub mod v1alpha1 {
    use super::v1beta1::{self, FlunderStatus, ReferenceType};
    use super::*;

    /// Flunder is an example namespaced object.
    #[apiloom::resource(group = "wardle.example.com", version = "v1alpha1", namespaced, storage, status, shortname = "fl",
        spoke_of = v1beta1::Flunder, lifecycle(introduced = "1.0", deprecated = "1.3", removed = "1.10"),
        printcolumn(name = "Type", path = spec.reference_type), printcolumn(name = "Reference", path = spec.reference),
        printcolumn(name = "Age", path = metadata.creation_timestamp), selectable(spec.reference_type))]
    pub struct Flunder {
        pub metadata: ObjectMeta,
        pub spec: FlunderSpec,
        pub status: Option<FlunderStatus>,
    }

    #[apiloom::api(convert(peer = v1beta1::FlunderSpec, with = (FlunderSpec::into_hub, FlunderSpec::from_hub)))]
    pub struct FlunderSpec {
        /// Name of another Flunder or of a Fischer.
        pub reference: Option<String>,
        #[api(requires(reference), default_with = |spec: &Self| spec.reference.as_ref().map(|_| ReferenceType::Flunder))]
        pub reference_type: Option<ReferenceType>,
    }

    impl FlunderSpec {
        fn into_hub(self) -> v1beta1::FlunderSpec {
            let Self {
                reference,
                reference_type,
            } = self;
            let (flunder_reference, fischer_reference) = match reference_type {
                Some(ReferenceType::Fischer) => (None, reference),
                _ => (reference, None),
            };
            v1beta1::FlunderSpec {
                flunder_reference,
                fischer_reference,
                reference_type,
            }
        }

        fn from_hub(hub: v1beta1::FlunderSpec) -> Self {
            let reference = hub.flunder_reference.or(hub.fischer_reference);
            Self {
                reference,
                reference_type: hub.reference_type,
            }
        }
    }

    /// Fischer lists Flunder names that may not be created.
    #[apiloom::resource(group = "wardle.example.com", version = "v1alpha1", cluster, storage, hub,
        lifecycle(introduced = "1.0", deprecated = "1.3", removed = "1.10"),
        printcolumn(name = "Age", path = metadata.creation_timestamp))]
    pub struct Fischer {
        pub metadata: ObjectMeta,
        /// Names that no Flunder may have.
        #[api(list = atomic)]
        pub disallowed_flunders: Vec<String>,
    }
}
