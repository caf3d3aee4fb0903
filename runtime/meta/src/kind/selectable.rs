//! Fields by which objects can be selected.

use smol_str::SmolStr;

use crate::path::JsonPath;

/// A field that field selectors may name, in addition to the name and the namespace.
///
/// ```
/// use apiloom_meta::JsonPath;
/// use apiloom_meta::kind::SelectableField;
/// let field = SelectableField::from(JsonPath::new(["spec", "color"]));
/// assert_eq!(field.name, "spec.color");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectableField {
    /// Its name in field selectors.
    pub name: SmolStr,
    /// Where its value is: the first of these places that is not empty. Mostly one, of the same name.
    pub paths: Vec<JsonPath>,
}

impl SelectableField {
    /// The path of the same name, if the value is only there: what documents such as CRDs can say about the field.
    pub fn path(&self) -> Option<&JsonPath> {
        let [path] = &self.paths[..] else {
            return None;
        };
        (path.as_field() == self.name).then_some(path)
    }
}

impl From<JsonPath> for SelectableField {
    /// The field with the name of its path.
    fn from(path: JsonPath) -> Self {
        Self {
            name: path.as_field().into(),
            paths: vec![path],
        }
    }
}
