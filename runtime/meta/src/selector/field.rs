//! The field selector grammar: `metadata.name=a,spec.referenceType!=Flunder`.

/// A parsed field selector; the empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {}

/// One requirement of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field's path, such as `metadata.name`.
    pub field: String,
    /// `false` for `!=`.
    pub equals: bool,
    /// The value compared with.
    pub value: String,
}

impl FieldSelector {
    /// Reads the query form.
    ///
    /// # Errors
    /// The parse error, verbatim as Kubernetes words it.
    pub fn parse(_text: &str) -> Result<Self, String> {
        todo!()
    }
    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        todo!()
    }
    /// The requirements, in order.
    pub fn requirements(&self) -> &[FieldRequirement] {
        todo!()
    }
    /// The value that `field` must equal, when the selector says so.
    pub fn requires(&self, _field: &str) -> Option<&str> {
        todo!()
    }
    /// Whether an object whose fields read so is selected; a missing field reads as the empty string.
    pub fn matches<'a>(&self, _field: impl Fn(&str) -> std::borrow::Cow<'a, str>) -> bool {
        todo!()
    }
}
