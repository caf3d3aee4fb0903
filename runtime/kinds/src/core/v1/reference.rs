//! ObjectReference.

use apiloom_macros::api;

/// ObjectReference names an object, or a part of one.
#[api(crate = apiloom_meta, atomic)]
#[derive(Default)]
pub struct ObjectReference {
    /// The kind of the object.
    #[api(proto(number = 1, omit_empty))]
    pub kind: Option<String>,
    /// Its namespace.
    #[api(proto(number = 2, omit_empty))]
    pub namespace: Option<String>,
    /// Its name.
    #[api(proto(number = 3, omit_empty))]
    pub name: Option<String>,
    /// Its uid.
    #[api(proto(number = 4, omit_empty))]
    pub uid: Option<String>,
    /// Its group and version.
    #[api(proto(number = 5, omit_empty))]
    pub api_version: Option<String>,
    /// Its resourceVersion, for a reference to one state of it.
    #[api(proto(number = 6, omit_empty))]
    pub resource_version: Option<String>,
    /// A part of the object, such as `spec.containers{name}`.
    #[api(proto(number = 7, omit_empty))]
    pub field_path: Option<String>,
}
