//! What a client must know of a kind and of its objects.

use apiloom_meta::Resource;
use apiloom_meta::gvk::{GroupResource, GroupVersion};
use apiloom_meta::kind::SmolStr;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::object::HasMetadata;

/// An object that clients read and write as JSON. Implemented for every [`Resource`].
pub trait ApiObject: HasMetadata + Serialize + DeserializeOwned {
    /// Whether the JSON of the type has `apiVersion` and `kind`, as that of a dynamic object. Default false: clients add
    /// them.
    const HAS_TYPE_FIELDS: bool = false;
}

/// A kind that is known when the program is compiled. Implemented for every [`Resource`].
pub trait Kind: ApiObject {
    /// Its group, version, kind and resource.
    fn api_resource() -> ApiResource;
}

/// Group, version, kind and resource: what paths and bodies of requests are made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiResource {
    /// The API group; empty for the core group.
    pub group: SmolStr,
    /// The version within the group.
    pub version: SmolStr,
    /// The kind, in CamelCase.
    pub kind: SmolStr,
    /// The plural name in paths, in lower case.
    pub plural: SmolStr,
}

impl ApiResource {
    /// A resource, of its parts.
    pub fn new(
        group: impl Into<SmolStr>,
        version: impl Into<SmolStr>,
        kind: impl Into<SmolStr>,
        plural: impl Into<SmolStr>,
    ) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
        }
    }

    /// The `apiVersion` of its objects: `v1`, or `group/v1`.
    pub fn api_version(&self) -> String {
        GroupVersion::new(&*self.group, &*self.version).to_string()
    }

    /// Group and resource; prints `flunders.wardle.example.com`.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&*self.group, &*self.plural)
    }
}

impl<K: Resource> ApiObject for K {}

impl<K: Resource> Kind for K {
    fn api_resource() -> ApiResource {
        ApiResource {
            group: SmolStr::new_static(K::GROUP),
            version: SmolStr::new_static(K::VERSION),
            kind: SmolStr::new_static(K::KIND),
            plural: SmolStr::new_static(K::PLURAL),
        }
    }
}
