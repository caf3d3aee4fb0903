//! The patterns of a build without the feature `schema`: there are none, since nothing makes schemas.

/// A pattern, of which there is no value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pattern {}

impl Pattern {
    pub(crate) fn text(&self) -> &str {
        match *self {}
    }

    pub(crate) fn is_match(&self, _: &str) -> bool {
        match *self {}
    }
}
