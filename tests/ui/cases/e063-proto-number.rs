//! The number of a Protobuf field is one of its own, in the range of Protobuf.

use apiloom::prelude::*;

#[apiloom::api(proto(reserved = [4, 0], reserved_names = ["old"]))]
pub struct Part {
    #[api(proto = 0)]
    pub zero: Option<String>,
    #[api(proto = -1)]
    pub negative: Option<String>,
    #[api(proto = 536870912)]
    pub large: Option<String>,
    #[api(proto = 19000)]
    pub of_protobuf: Option<String>,
    #[api(proto = 1)]
    pub first: Option<String>,
    #[api(proto(number = 1, omit_empty))]
    pub twin: Option<String>,
    #[api(proto = 4)]
    pub reserved: Option<String>,
    #[api(proto = 5)]
    pub old: Option<String>,
}

#[apiloom::api]
pub struct Written {
    #[api(proto(omit_empty))]
    pub without: Option<String>,
    #[api(proto)]
    pub flag: Option<String>,
    #[api(proto = "1")]
    pub text: Option<String>,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced, proto(package = "1.x"), protobuf = FORM)]
pub struct Thing {
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
}

#[apiloom::api(proto(name = "a part"))]
pub struct Named {
    #[api(proto = 1)]
    pub name: String,
}

#[apiloom::resource(group = "example.com", version = "v1", namespaced)]
#[api(proto(name = "Another"))]
pub struct Other {
    pub metadata: ObjectMeta,
    #[api(proto = 1)]
    pub spec: Option<String>,
}

fn main() {}
