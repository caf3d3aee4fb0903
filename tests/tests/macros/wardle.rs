//! The two kinds and two versions of wardle.

use apiloom::prelude::*;

apiloom::group! { name = "wardle.example.com", versions = [v1beta1, v1alpha1], release = "1.2" }

pub mod v1beta1 {
    use super::*;

    /// Flunder is an example namespaced object.
    #[apiloom::resource(
        group = "wardle.example.com",
        version = "v1beta1",
        namespaced,
        hub,
        status,
        shortname = "fl",
        printcolumn(name = "Type", path = spec.reference_type),
        printcolumn(name = "Age", path = metadata.creation_timestamp),
        selectable(spec.reference_type)
    )]
    pub struct Flunder {
        pub metadata: ObjectMeta,
        pub spec: FlunderSpec,
        pub status: Option<FlunderStatus>,
    }

    #[apiloom::api(custom = FlunderSpec::check)]
    #[derive(Default)]
    pub struct FlunderSpec {
        /// Name of another Flunder.
        pub flunder_reference: Option<String>,
        /// Name of a Fischer.
        pub fischer_reference: Option<String>,
        pub reference_type: Option<ReferenceType>,
    }

    impl FlunderSpec {
        fn check(&self, path: &FieldPath) -> Option<FieldError> {
            let both = self.flunder_reference.is_some() && self.fischer_reference.is_some();
            both.then(|| {
                FieldError::invalid(
                    &path.child("fischerReference"),
                    &self.fischer_reference,
                    "one of the two",
                )
            })
        }
    }

    #[apiloom::api]
    pub enum ReferenceType {
        Flunder,
        Fischer,
        #[api(unknown)]
        Unknown(String),
    }

    #[apiloom::api]
    pub struct FlunderStatus {}
}

pub mod v1alpha1 {
    use super::v1beta1::{self, FlunderStatus, ReferenceType};
    use super::*;

    /// Flunder is an example namespaced object.
    #[apiloom::resource(
        group = "wardle.example.com",
        version = "v1alpha1",
        namespaced,
        storage,
        spoke_of = v1beta1::Flunder,
        status,
        shortname = "fl",
        lifecycle(introduced = "1.0", deprecated = "1.3", removed = "1.10"),
        printcolumn(name = "Type", path = spec.reference_type),
        selectable(spec.reference_type)
    )]
    pub struct Flunder {
        pub metadata: ObjectMeta,
        pub spec: FlunderSpec,
        pub status: Option<FlunderStatus>,
    }

    #[apiloom::api]
    #[derive(Default)]
    pub struct FlunderSpec {
        #[api(len(max = 253))]
        pub reference: Option<String>,
        #[api(default_with = FlunderSpec::default_type)]
        pub reference_type: Option<ReferenceType>,
    }

    impl FlunderSpec {
        fn default_type(&self) -> Option<ReferenceType> {
            self.reference.as_ref().map(|_| ReferenceType::Flunder)
        }
    }

    impl ConvertFrom<FlunderSpec> for v1beta1::FlunderSpec {
        fn convert_from(spec: FlunderSpec) -> Result<Self, ConvertError> {
            let FlunderSpec {
                reference,
                reference_type,
            } = spec;
            Ok(match reference_type {
                Some(ReferenceType::Fischer) => Self {
                    fischer_reference: reference,
                    reference_type,
                    ..Self::default()
                },
                _ => Self {
                    flunder_reference: reference,
                    reference_type,
                    ..Self::default()
                },
            })
        }
    }

    impl ConvertFrom<v1beta1::FlunderSpec> for FlunderSpec {
        fn convert_from(spec: v1beta1::FlunderSpec) -> Result<Self, ConvertError> {
            let reference = spec.flunder_reference.or(spec.fischer_reference);
            Ok(Self {
                reference,
                reference_type: spec.reference_type,
            })
        }
    }

    /// Fischer lists Flunder names that may not be created.
    #[apiloom::resource(group = "wardle.example.com", version = "v1alpha1", cluster, storage)]
    pub struct Fischer {
        pub metadata: ObjectMeta,
        #[api(list = atomic, each(format = dns_subdomain))]
        pub disallowed_flunders: Vec<String>,
    }
}
