//! The hub is the same kind of the same group in another version.

use apiloom::prelude::*;

pub mod v1 {
    use apiloom::prelude::*;

    #[apiloom::resource(group = "example.com", version = "v1", namespaced, hub)]
    pub struct Other {
        pub metadata: ObjectMeta,
    }
}

#[apiloom::resource(group = "example.com", version = "v1alpha1", namespaced, spoke_of = v1::Other)]
pub struct Thing {
    pub metadata: ObjectMeta,
}

#[apiloom::resource(group = "example.com", version = "v2", namespaced, kind = "Other", stored_as = v1::Other)]
pub struct OtherAgain {
    pub metadata: ObjectMeta,
}

fn main() {}
