//! A group as declared with `apiloom::group!`.

mod parse;
#[cfg(test)]
mod tests;

pub use parse::parse_group;

use crate::SpannedValue;
use crate::kind::Release;

/// A declared API group.
#[derive(Clone, Debug)]
pub struct Group {
    /// The group's name; empty for core.
    pub name: SpannedValue<String>,
    /// Versions, preferred first. Each is a module of the package with that name.
    pub versions: Vec<SpannedValue<String>>,
    /// The current release.
    pub release: Option<SpannedValue<Release>>,
    /// Whether `versions` has no error; if it has one, versions may be missing here.
    pub versions_are_known: bool,
    /// Whether `release` has no error; if it has one, it is missing here.
    pub release_is_known: bool,
}
