//! A type that stands inside objects, as `#[api(..)]` declares it: structs, enums, their fields and variants.

mod parse;
mod rules;
#[cfg(test)]
mod tests;
mod types;

pub use parse::parse_api;
pub(crate) use parse::{parse_struct, read_struct};
pub use rules::{Bounds, ListTopology, MapTopology, Rules, Transition};
pub use types::{Leaf, holds_bytes, leaf};

use crate::{Code, Name, SourceSpan, Spanned};

/// A struct or an enum with `#[api]`.
#[derive(Clone, Debug)]
pub enum ApiType {
    /// A struct.
    Struct(ApiStruct),
    /// An enum.
    Enum(ApiEnum),
    /// One value under a name of its own.
    Newtype(ApiNewtype),
}

/// A struct of one unnamed field with `#[api]`: the value itself, with rules of its own.
#[derive(Clone, Debug)]
pub struct ApiNewtype {
    /// The Rust name.
    pub name: Name,
    /// The doc comment, as plain text.
    pub description: String,
    /// Rules of the value.
    pub rules: Rules,
    /// The type of the value, as written.
    pub inner: Code,
    /// Last segments of the derives that the user listed below the attribute.
    pub derives: Vec<String>,
}

/// A struct with `#[api]`, or the root struct of a kind.
#[derive(Clone, Debug)]
pub struct ApiStruct {
    /// The Rust name.
    pub name: Name,
    /// The doc comment, as plain text.
    pub description: String,
    /// Rules of the whole value.
    pub rules: Rules,
    /// The union that its fields form, if any.
    pub union: Option<Union>,
    /// Peers that it converts to and from.
    pub conversions: Vec<Conversion>,
    /// Fields in declared order.
    pub fields: Vec<Field>,
    /// Last segments of the derives that the user listed below the attribute.
    pub derives: Vec<String>,
}

/// Fields of which at most one is set.
#[derive(Clone, Debug)]
pub struct Union {
    /// The field that says which member is set.
    pub tag: Option<Name>,
    /// Whether no member may be set at all.
    pub allow_none: bool,
    /// Where it is declared.
    pub span: SourceSpan,
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// The Rust name.
    pub name: Name,
    /// The JSON name.
    pub json_name: String,
    /// The type, as written.
    pub ty: Code,
    /// What the type's tokens say it is; the macros let rustc prove it.
    pub shape: Shape,
    /// The doc comment, as plain text.
    pub description: String,
    /// Rules of the value.
    pub rules: Rules,
    /// Whether its fields stand in the parent.
    pub flatten: bool,
    /// The default, a Rust expression of the field's type (inside the `Option`, if it is one).
    pub default: Option<Code>,
    /// A function of the parent that computes the default.
    pub default_with: Option<Code>,
    /// The union members that the field is: the values of the tag that select it.
    pub members: Vec<Spanned<String>>,
    /// How it converts, when not by itself.
    pub convert: FieldConversion,
}

/// The outermost shape of a type by its tokens.
#[derive(Clone, Debug)]
pub enum Shape {
    /// `Option<T>`.
    Option(Code),
    /// `Vec<T>` and the sets.
    List,
    /// A map.
    Map,
    /// Anything else.
    Other,
}

/// What `convert(..)` on a type says.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The other type, as written.
    pub peer: Code,
    /// The user writes both `ConvertFrom` impls.
    pub manual: bool,
    /// Functions of the whole value: to the peer and back.
    pub with: Option<(Code, Code)>,
    /// Fields that only the peer has, and what they get.
    pub hub_only: Vec<(Name, Code)>,
    /// Fields of the peer whose loss is accepted.
    pub lossy: Vec<Name>,
}

/// What `convert(..)` on a field says.
#[derive(Clone, Debug, Default)]
pub struct FieldConversion {
    /// The field's name in the peer.
    pub rename: Option<Name>,
    /// Functions to the peer's field and back.
    pub with: Option<(Code, Code)>,
    /// The peer has no such field; its value is lost on the way there.
    pub drop: bool,
    /// What the field gets on the way back when it is dropped.
    pub default: Option<Code>,
    /// Where it is declared.
    pub span: Option<SourceSpan>,
}

/// An enum with `#[api]`.
#[derive(Clone, Debug)]
pub struct ApiEnum {
    /// The Rust name.
    pub name: Name,
    /// The doc comment, as plain text.
    pub description: String,
    /// Rules of the whole value.
    pub rules: Rules,
    /// Peers that it converts to and from.
    pub conversions: Vec<Conversion>,
    /// Variants in declared order.
    pub variants: Vec<Variant>,
    /// The fields by which an object tells its variant: the variants that hold something, or else the tag.
    pub wire_names: Vec<String>,
    /// Last segments of the derives that the user listed below the attribute.
    pub derives: Vec<String>,
}

impl ApiEnum {
    /// Whether every variant is a plain string on the wire.
    pub fn is_plain(&self) -> bool {
        self.variants
            .iter()
            .all(|v| v.unknown || matches!(v.content, Content::Unit))
    }
    /// The variant that takes what is not known, if the enum is open.
    pub fn unknown(&self) -> Option<&Variant> {
        self.variants.iter().find(|v| v.unknown)
    }
}

/// A variant of an enum.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The Rust name.
    pub name: Name,
    /// Its string, or the name of its field, on the wire.
    pub json_name: String,
    /// The doc comment, as plain text.
    pub description: String,
    /// Whether it takes every value that is not known.
    pub unknown: bool,
    /// What it holds.
    pub content: Content,
}

impl Variant {
    /// The named fields that it holds.
    pub fn fields(&self) -> &[Field] {
        match &self.content {
            Content::Fields(fields) => fields,
            Content::Unit | Content::Value(_) => &[],
        }
    }
}

/// What a variant holds.
#[derive(Clone, Debug)]
pub enum Content {
    /// Nothing.
    Unit,
    /// One value of this type.
    Value(Code),
    /// Named fields.
    Fields(Vec<Field>),
}
