//! What a conversion does not say is an error that names the field; numbers are not narrowed.

use apiloom::prelude::*;

pub mod v1 {
    use apiloom::prelude::*;

    #[apiloom::resource(group = "example.com", version = "v1", namespaced, hub)]
    pub struct Thing {
        pub metadata: ObjectMeta,
        pub same: String,
        pub number: i64,
        pub hub_only: String,
    }
}

#[apiloom::resource(group = "example.com", version = "v1alpha1", namespaced, storage, spoke_of = v1::Thing)]
pub struct Thing {
    pub metadata: ObjectMeta,
    pub same: String,
    pub number: i32,
    pub spoke_only: String,
}

fn main() {}
