//! The form in which objects are returned: the object, a Table of it, or its metadata.

use crate::request::accept::Clause;
use crate::request::params::IncludeObject;

/// Version of `meta.k8s.io` for Tables and PartialObjectMetadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1beta1,
}

impl MetaVersion {
    /// `apiVersion` of the written document.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The form in which an object is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object itself.
    Object,
    /// `as=Table`.
    Table(MetaVersion, IncludeObject),
    /// `as=PartialObjectMetadata`.
    Partial(MetaVersion),
    /// `as=PartialObjectMetadataList`.
    PartialList(MetaVersion),
}

impl Form {
    /// The form that a clause requests; `None` for an unknown form.
    pub(crate) fn of(clause: &Clause<'_>) -> Option<Self> {
        let [kind, group, version] = ["as", "g", "v"].map(|name| clause.param(name));
        if kind.is_none() && group.is_none() && version.is_none() {
            return Some(Self::Object);
        }
        let version = match (group?, version?) {
            ("meta.k8s.io", "v1") => MetaVersion::V1,
            ("meta.k8s.io", "v1beta1") => MetaVersion::V1beta1,
            _ => return None,
        };
        match kind? {
            "Table" => Some(Self::Table(version, IncludeObject::Metadata)),
            "PartialObjectMetadata" => Some(Self::Partial(version)),
            "PartialObjectMetadataList" => Some(Self::PartialList(version)),
            _ => None,
        }
    }
}
