//! API types: structs and enums inside objects as declared with `#[api(..)]`, their fields and variants.

mod conversion;
mod parse;
mod proto;
mod rules;
#[cfg(test)]
mod tests;
mod types;

pub use crate::values::{Bounds, ProtoMessage, ProtoNumber};
pub use parse::parse_api;
pub(crate) use parse::{parse_struct, read_struct};
pub(crate) use rules::read_cel;
pub use rules::{CelRule, ListTopology, MapTopology, PatchRule, Rules, Transition};
pub use types::{Leaf, holds_bytes, leaf};

use crate::{Code, Name, SourceSpan, SpannedValue};

/// A struct or an enum with `#[api]`.
#[derive(Clone, Debug)]
pub enum ApiType {
    /// A struct.
    Struct(ApiStruct),
    /// An enum.
    Enum(ApiEnum),
    /// A struct of one unnamed field.
    Newtype(ApiNewtype),
}

/// A struct of one unnamed field with `#[api]`: it has the JSON form of its field, with rules of its own.
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
    /// Whether an attribute of serde's gives the value another JSON form than its type has.
    pub has_own_form: bool,
    /// Last segments of the user's derives below the attribute.
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
    /// Its message in Protobuf.
    pub proto: ProtoMessage,
    /// Last segments of the user's derives below the attribute.
    pub derives: Vec<String>,
}

impl ApiStruct {
    /// Whether it is a Protobuf message: all of its fields have numbers.
    pub fn is_message(&self) -> bool {
        are_numbered(&self.fields)
    }
}

/// Whether all fields have numbers in Protobuf.
fn are_numbered(fields: &[Field]) -> bool {
    fields.iter().all(|field| field.proto.is_some())
}

/// Fields of which at most one is set.
#[derive(Clone, Debug)]
pub struct Union {
    /// The tag: the field that names the member which is set.
    pub tag: Option<Name>,
    /// Whether all members may be absent.
    pub allow_none: bool,
    /// The span of the declaration.
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
    /// The type's shape by its tokens; the expansion makes rustc verify it.
    pub shape: Shape,
    /// The doc comment, as plain text.
    pub description: String,
    /// Rules of the value.
    pub rules: Rules,
    /// Whether its fields are inlined into the parent.
    pub flatten: bool,
    /// The default, a Rust expression of the field's type (inside the `Option`, if it is one).
    pub default: Option<Code>,
    /// A function of the parent that computes the default.
    pub default_with: Option<Code>,
    /// The values of the union's tag that select this field.
    pub members: Vec<SpannedValue<String>>,
    /// How it converts, if not by its type.
    pub convert: FieldConversion,
    /// Where it is declared that `Debug` hides the value.
    pub sensitive: Option<SourceSpan>,
    /// Its number in Protobuf.
    pub proto: Option<ProtoNumber>,
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

/// The arguments of `convert(..)` on a type.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The peer type, as written.
    pub peer: Code,
    /// Whether the user writes both `ConvertFrom` impls.
    pub manual: bool,
    /// Functions of the whole value: to the peer and back.
    pub with: Option<(Code, Code)>,
    /// Fields that only the peer has, with their values.
    pub hub_only: Vec<(Name, Code)>,
    /// Fields of the peer whose loss is accepted.
    pub lossy: Vec<Name>,
}

/// The arguments of `convert(..)` on a field.
#[derive(Clone, Debug, Default)]
pub struct FieldConversion {
    /// The field's name in the peer.
    pub rename: Option<Name>,
    /// Functions to the peer's field and back.
    pub with: Option<(Code, Code)>,
    /// Whether the peer has no such field; its value is lost in the conversion to the peer.
    pub drop: bool,
    /// The field's value in the conversion from the peer, for a dropped field.
    pub default: Option<Code>,
    /// The span of the declaration.
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
    /// The JSON fields that tell an object's variant: the variants with content, or else the tag.
    pub wire_names: Vec<String>,
    /// Its message in Protobuf.
    pub proto: ProtoMessage,
    /// Last segments of the user's derives below the attribute.
    pub derives: Vec<String>,
}

impl ApiEnum {
    /// Whether every variant is a plain string on the wire.
    pub fn is_plain(&self) -> bool {
        self.variants
            .iter()
            .all(|v| v.unknown || matches!(v.content, Content::Unit))
    }
    /// Whether it is a Protobuf message: all variants have numbers, and so have their fields.
    pub fn is_message(&self) -> bool {
        let is_numbered =
            |variant: &Variant| variant.proto.is_some() && are_numbered(variant.fields());
        !self.variants.is_empty() && self.variants.iter().all(is_numbered)
    }
    /// The variant for unknown values, if the enum is open.
    pub fn unknown(&self) -> Option<&Variant> {
        self.variants.iter().find(|v| v.unknown)
    }
}

/// A variant of an enum.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The Rust name.
    pub name: Name,
    /// Its string, or the name of its field, in JSON.
    pub json_name: String,
    /// The doc comment, as plain text.
    pub description: String,
    /// Whether it holds all unknown values.
    pub unknown: bool,
    /// The content of the variant.
    pub content: Content,
    /// Its number in Protobuf, of a variant that is an object.
    pub proto: Option<ProtoNumber>,
}

impl Variant {
    /// The named fields of the variant.
    pub fn fields(&self) -> &[Field] {
        match &self.content {
            Content::Fields(fields) => fields,
            Content::Unit | Content::Value(_) => &[],
        }
    }
}

/// The content of a variant.
#[derive(Clone, Debug)]
pub enum Content {
    /// Nothing.
    Unit,
    /// One value of this type.
    Value(Code),
    /// Named fields.
    Fields(Vec<Field>),
}
