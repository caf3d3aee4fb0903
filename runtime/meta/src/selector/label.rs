//! The label selector grammar: `k=v,k2 in (a,b),!k3,k4>5`.

/// A parsed label selector; the empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {}

impl LabelSelector {
    /// Reads the query form. The error is the text that the API answers with 400.
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
    /// Whether an object with these labels (looked up by key) is selected.
    pub fn matches<'a>(&self, _label: impl Fn(&str) -> Option<&'a str>) -> bool {
        todo!()
    }
}
