//! How documents are read and written, where typed objects and unstructured ones differ in Kubernetes.
//!
//! Each node of a schema has one: the metadata of a custom resource is typed.

/// The answers to all questions of codecs, defaults, pruning and applies that compiled kinds and custom resources answer
/// differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentDialect {
    /// Whether the value is decoded into a type of Go: a value of another type is an error of the decoder, null among items
    /// is the zero value, and an apply may leave fields out that the type has. Otherwise (`unstructured.Unstructured`) any
    /// value is kept, and validation reports wrong ones.
    pub is_typed: bool,
    /// Whether the document is read into a tree first, and what is typed in it is decoded from that: duplicates in unknown
    /// fields are told, unknown fields in the order of their names, and numbers have one form.
    pub is_read_as_tree: bool,
    /// Whether numbers of any type are Go's `int64` and `float64`, of which the latter stay floats; otherwise a number is
    /// what its text is.
    pub has_go_numbers: bool,
    /// Whether all fields are written sorted, as of a map; otherwise in the order of the type.
    pub sorts_fields: bool,
    /// Whether a value of which nothing is described keeps its fields, as a `runtime.RawExtension` of a type; otherwise only
    /// `x-kubernetes-preserve-unknown-fields` keeps them.
    pub(crate) keeps_undescribed: bool,
    /// Whether a default replaces a null that is no value (`PruneNonNullableNullsWithoutDefaults` of apiextensions-apiserver);
    /// otherwise such a null is absent, whether there is a default or not.
    pub defaults_nulls: bool,
}

impl DocumentDialect {
    /// Documents of compiled kinds, and the metadata of all objects.
    pub(crate) const COMPILED: Self = Self {
        is_typed: true,
        is_read_as_tree: false,
        has_go_numbers: false,
        sorts_fields: false,
        keeps_undescribed: true,
        defaults_nulls: false,
    };

    /// Documents of custom resources.
    pub const CUSTOM: Self = Self {
        is_typed: false,
        is_read_as_tree: true,
        has_go_numbers: true,
        sorts_fields: true,
        keeps_undescribed: false,
        defaults_nulls: true,
    };
}

impl Default for DocumentDialect {
    fn default() -> Self {
        Self::COMPILED
    }
}
