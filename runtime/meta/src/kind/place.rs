//! Where a kind or a group is declared.

use std::fmt;

/// A file and a line of the source, as rustc names them: relative to the folder of the workspace. The macros fill it in;
/// problems that are found when a server is built begin with it.
///
/// ```
/// use apiloom_meta::kind::Place;
///
/// let place = Place { file: "src/v1.rs", line: 12 };
/// assert_eq!(place.to_string(), "src/v1.rs:12");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as `file!()` gives it.
    pub file: &'static str,
    /// The line, counted from 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
