//! Subresources: paths below an object, with verbs of their own.

use smol_str::SmolStr;

use super::verb::Verb;
use crate::gvk::GroupVersionKind;

/// A subresource of a kind: `/apis/GROUP/VERSION/RESOURCE/NAME/SUBRESOURCE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubresourceDef {
    /// The name, the last part of the path.
    pub name: SmolStr,
    /// The verbs, sorted. A verb that the kind does not serve is not served here either.
    pub verbs: Vec<Verb>,
    /// The part of the object that it writes.
    pub writes: Writes,
    /// The kind of request bodies; `None` for the object itself.
    pub input: Option<GroupVersionKind>,
    /// The kind of responses; `None` for the object itself.
    pub output: Option<GroupVersionKind>,
}

/// The part of an object that a subresource writes. A field that a subresource names here is not written by the
/// object's own path, nor by the other subresources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Nothing of the object.
    Nothing,
    /// One field; everything else stays, metadata included. A new object has the field's default.
    Only(SmolStr),
    /// One field besides what the object's own path writes.
    Also(SmolStr),
}

impl Writes {
    /// The field that belongs to the subresource.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Only(field) | Self::Also(field) => Some(field),
        }
    }
}

impl SubresourceDef {
    /// The name of the subresource that most kinds have.
    pub const STATUS: &'static str = "status";

    /// A subresource for objects of the kind itself.
    pub fn new(name: impl Into<SmolStr>, verbs: &[Verb], writes: Writes) -> Self {
        Self {
            name: name.into(),
            verbs: verbs.to_vec(),
            writes,
            input: None,
            output: None,
        }
    }

    /// `status`: it is read, and writes the field `status` only.
    pub fn status() -> Self {
        Self::new(
            SmolStr::new_static(Self::STATUS),
            &[Verb::Get, Verb::Patch, Verb::Update],
            Writes::Only(SmolStr::new_static(Self::STATUS)),
        )
    }
}
