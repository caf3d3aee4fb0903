//! Unknown keys get the near spelling, across the whole vocabulary.

use apiloom::prelude::*;

#[apiloom::resource(group = "example.com", version = "v1", namespaced, shrotname = "th", printcolum(name = "X", path = metadata.name), bananas)]
pub struct Thing {
    pub metadata: ObjectMeta,
}

#[apiloom::api]
pub struct Part {
    #[api(formt = dns_label, len(mix = 3), pubkey, grup = 1)]
    pub name: String,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, genclient, noclient, subresources, storageVersion)]
pub struct Ported {
    pub metadata: ObjectMeta,
    #[api(maxLength = 3, minimum = 1, genclient, sinc = "1", protobuf)]
    pub name: String,
}

fn main() {}
