//! Kinds from documents: the versions that a CustomResourceDefinition describes.

#[cfg(feature = "schema")]
mod definitions;
#[cfg(feature = "schema")]
mod stored_definition;

use smol_str::SmolStr;

#[cfg(feature = "schema")]
pub use self::definitions::custom_definitions;
#[cfg(feature = "schema")]
pub use self::stored_definition::StoredDefinition;

/// What only a kind from a document has. How it is served is [`Dialect::CUSTOM`](super::Dialect::CUSTOM).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomKind {
    /// Warning for every request in this version; `None` if it is not deprecated.
    pub deprecation_warning: Option<SmolStr>,
    /// The uid of the definition; empty for a document of a program.
    pub uid: SmolStr,
    /// State of the document, by which a server sees that the kind did not change; empty for a document of a program.
    pub state: SmolStr,
}
