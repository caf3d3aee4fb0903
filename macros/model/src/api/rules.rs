//! The rules that `#[api(..)]` can put on a value.

mod cel;
mod read;

pub use cel::CelRule;
pub(crate) use cel::read_cel;
pub(crate) use read::{literal, read_rule, settle_patch_key};

use crate::values::Bounds;
use crate::{Code, Name, SpannedValue};

/// Rules of one value: a field, a list element, a map key, a whole type.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Must be set and not empty.
    pub required: bool,
    /// Must be sent, and may be empty or null.
    pub present: bool,
    /// Must not be set.
    pub forbidden: bool,
    /// Null is a value of its own.
    pub nullable: bool,
    /// Smallest allowed number.
    pub min: Option<Code>,
    /// Largest allowed number.
    pub max: Option<Code>,
    /// The number must be greater.
    pub gt: Option<Code>,
    /// The number must be smaller.
    pub lt: Option<Code>,
    /// The number must be a multiple.
    pub multiple_of: Option<Code>,
    /// Length of a string in characters.
    pub len: Bounds,
    /// Length of a string in bytes.
    pub bytes: Bounds,
    /// Number of list elements.
    pub items: Bounds,
    /// Number of map entries.
    pub props: Bounds,
    /// Regular expression that the string must contain.
    pub pattern: Option<SpannedValue<String>>,
    /// Format of the string, in its JSON spelling: `dns-label`.
    pub format: Option<SpannedValue<String>>,
    /// The one value that is refused.
    pub neq: Option<Code>,
    /// Rules of every list element or map value.
    pub each: Option<Box<Rules>>,
    /// Rules of every map key.
    pub keys: Option<Box<Rules>>,
    /// Sibling fields that must be set with this one.
    pub requires: Vec<Name>,
    /// Sibling fields that must not be set with this one.
    pub conflicts: Vec<Name>,
    /// List elements must differ.
    pub unique: bool,
    /// Rules declared on the field's type are not run.
    pub opaque: bool,
    /// Changes that an update may not make.
    pub update: Vec<Transition>,
    /// Checks written by the user: `fn(&T, &FieldPath) -> Vec<FieldError>`.
    pub custom: Vec<Code>,
    /// Rules in CEL.
    pub cel: Vec<CelRule>,
    /// Elements of a set, or with the keys of a list map, may be there twice.
    pub duplicates: bool,
    /// How a list merges.
    pub list: Option<ListTopology>,
    /// How a map or a struct merges.
    pub map: Option<MapTopology>,
    /// How a strategic merge patch changes the value.
    pub patch: Option<PatchRule>,
    /// Whether server-side apply replaces the list, map or struct as a whole.
    pub atomic: bool,
    /// Unknown fields below are kept.
    pub preserve_unknown: bool,
    /// The value is a whole object with apiVersion and kind.
    pub embedded_resource: bool,
    /// The value is a number or a string.
    pub int_or_string: bool,
    /// Further keywords of the value's schema, as JSON.
    pub schema: Option<SpannedValue<String>>,
    /// An example for the documentation.
    pub example: Option<Code>,
    /// A title for the documentation.
    pub title: Option<String>,
    /// Deprecated, and why.
    pub deprecated: Option<String>,
}

/// How a list merges under server-side apply, and which elements are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListTopology {
    /// Replaced as a whole.
    Atomic,
    /// A set of scalars.
    Set,
    /// Elements are identified by these fields.
    Map(Vec<Name>),
}

/// How a strategic merge patch changes a value: `patch(..)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchRule {
    /// The items of a list are merged.
    pub merge: bool,
    /// The value is replaced as a whole.
    pub replace: bool,
    /// Clients list the fields that an object keeps.
    pub retain_keys: bool,
    /// The field that identifies an item of a merged list.
    pub key: Option<Name>,
}

impl PatchRule {
    /// The spelling in the schema: `merge,retainKeys`.
    pub fn strategy(&self) -> String {
        let words = [
            (self.merge, "merge"),
            (self.replace, "replace"),
            (self.retain_keys, "retainKeys"),
        ];
        let words = words.iter().filter(|(is_set, _)| *is_set);
        words.map(|(_, word)| *word).collect::<Vec<_>>().join(",")
    }
}

/// How a map or a struct merges under server-side apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapTopology {
    /// Replaced as a whole.
    Atomic,
    /// Merged entry by entry.
    Granular,
}

/// A change that an update may not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are validation-gen's own")]
pub enum Transition {
    NoSet,
    NoUnset,
    NoModify,
    NoAddItem,
    NoRemoveItem,
    Immutable,
    Monotonic,
}

impl Transition {
    /// The spelling in the schema.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSet => "NoSet",
            Self::NoUnset => "NoUnset",
            Self::NoModify => "NoModify",
            Self::NoAddItem => "NoAddItem",
            Self::NoRemoveItem => "NoRemoveItem",
            Self::Immutable => "Immutable",
            Self::Monotonic => "Monotonic",
        }
    }
}
