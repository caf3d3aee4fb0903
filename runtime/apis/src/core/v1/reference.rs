//! ObjectReference.

use apiloom_macros::api;

/// ObjectReference names an object, or a part of one.
#[api(crate = apiloom_meta, atomic)]
#[derive(Default)]
pub struct ObjectReference {
    /// The kind of the object.
    pub kind: Option<String>,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its uid.
    pub uid: Option<String>,
    /// Its group and version.
    pub api_version: Option<String>,
    /// Its resourceVersion, for a reference to one state of it.
    pub resource_version: Option<String>,
    /// A part of the object, such as `spec.containers{name}`.
    pub field_path: Option<String>,
}
