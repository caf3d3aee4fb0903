//! Subresources: paths below an object, with their own verbs.

use smol_str::SmolStr;

use super::verb::Verb;
use crate::gvk::GroupVersionKind;

/// A subresource of a kind: `/apis/GROUP/VERSION/RESOURCE/NAME/SUBRESOURCE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubresourceDef {
    /// Name; the last segment of the path.
    pub name: SmolStr,
    /// Verbs, sorted. Verbs that the kind does not serve are not served here either.
    pub verbs: Vec<Verb>,
    /// The part of the object that it writes.
    pub writes: Writes,
    /// The kind of request bodies; `None` for the object itself.
    pub input: Option<GroupVersionKind>,
    /// The kind of responses; `None` for the object itself.
    pub output: Option<GroupVersionKind>,
}

/// The part of an object that a subresource writes. A field named here is not written by updates of the object itself,
/// nor by other subresources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writes {
    /// No part of the object.
    Nothing,
    /// Only this field; all others stay unchanged, including metadata. On create the field has its default.
    Only(SmolStr),
    /// This field, and those that an update of the object itself writes.
    Also(SmolStr),
}

impl Writes {
    /// The field of the subresource.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Only(field) | Self::Also(field) => Some(field),
        }
    }
}

impl SubresourceDef {
    /// Name of the status subresource.
    pub const STATUS: &'static str = "status";

    /// A subresource whose requests and responses are objects of the kind itself.
    pub fn new(name: impl Into<SmolStr>, verbs: &[Verb], writes: Writes) -> Self {
        Self {
            name: name.into(),
            verbs: verbs.to_vec(),
            writes,
            input: None,
            output: None,
        }
    }

    /// The subresource `status`, which can be read, and writes only the field `status`.
    pub fn status() -> Self {
        Self::new(
            SmolStr::new_static(Self::STATUS),
            &[Verb::Get, Verb::Patch, Verb::Update],
            Writes::Only(SmolStr::new_static(Self::STATUS)),
        )
    }
}
