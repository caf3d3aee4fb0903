//! What a conversion does not say is one error that says what to write; numbers are widened and not narrowed.

use apiloom::prelude::*;

pub mod v1 {
    use apiloom::prelude::*;

    #[apiloom::resource(group = "example.com", version = "v1", namespaced, hub)]
    pub struct Thing {
        pub metadata: ObjectMeta,
        pub spec: ThingSpec,
        pub hub_only: String,
        pub hub_too: String,
    }

    #[apiloom::api]
    pub struct ThingSpec {
        pub same: String,
        pub number: i64,
        pub text: String,
        pub seconds: i64,
    }
}

#[apiloom::resource(group = "example.com", version = "v1alpha1", namespaced, storage, spoke_of = v1::Thing)]
pub struct Thing {
    pub metadata: ObjectMeta,
    pub spec: ThingSpec,
    pub spoke_only: String,
}

#[apiloom::api(convert(peer = v1::ThingSpec, hub_only(nothing = 1), lossy(nobody)))]
pub struct ThingSpec {
    #[api(convert(rename = sane))]
    pub same: String,
    pub number: i64,
    pub text: String,
    pub seconds: i64,
}

#[apiloom::api(convert(peer = v1::ThingSpec))]
pub struct Numbers {
    pub same: String,
    pub number: i32,
    #[api(convert(with = (to_number, from_text)))]
    pub text: String,
    #[api(convert(with = (i64::from, i32::try_from)))]
    pub seconds: i32,
}

fn to_number(_: String) -> Result<i64, String> {
    Ok(1)
}

fn from_text(text: String) -> String {
    text
}

fn main() {}
