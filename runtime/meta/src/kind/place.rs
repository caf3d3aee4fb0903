//! Source location of the declaration of a kind or a group.

use std::fmt;

/// File and line of a declaration, as rustc reports them: relative to the workspace folder. Set by the macros; errors
/// of the server's build begin with it.
///
/// ```
/// use apiloom_meta::kind::Place;
///
/// let place = Place { file: "src/v1.rs", line: 12 };
/// assert_eq!(place.to_string(), "src/v1.rs:12");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, from `file!()`.
    pub file: &'static str,
    /// The line, starting at 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
